"""Schema files: proposal, acceptance, backup, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorflow_metadata.proto.v0 import schema_pb2

from core.errors import ConfigError, UsageError
from core.schema import read
from pipeline.schema_tools import schema_file

pytestmark = pytest.mark.unit

OLD = '# Ours.\nfeature { name: "fare" type: FLOAT }\n'
NEW = '# Proposed.\nfeature { name: "fare" type: INT }\n'


def _curated(tmp_path: Path, proposed: str | None = NEW) -> Path:
    path = tmp_path / "taxi.pbtxt"
    path.write_text(OLD, encoding="utf-8")
    if proposed is not None:
        schema_file.proposed_path(path).write_text(proposed, encoding="utf-8")
    return path


def test_accept_replaces_the_file_and_keeps_the_old_bytes(tmp_path: Path) -> None:
    """The proposal becomes the curated file byte for byte, the old one a backup, and nothing stays proposed."""
    path = _curated(tmp_path)
    backup = schema_file.accept(path)
    assert path.read_text(encoding="utf-8") == NEW
    assert backup is not None
    assert backup.read_text(encoding="utf-8") == OLD
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted([path.name, backup.name])


def test_two_acceptances_in_one_second_keep_two_backups(tmp_path: Path) -> None:
    """No backup replaces another."""
    path = _curated(tmp_path)
    first = schema_file.accept(path)
    schema_file.proposed_path(path).write_text(OLD, encoding="utf-8")
    second = schema_file.accept(path)
    assert {item.read_text(encoding="utf-8") for item in (first, second) if item} == {OLD, NEW}


def test_a_first_schema_needs_no_backup(tmp_path: Path) -> None:
    """Where no schema was curated yet, the proposal is simply taken."""
    path = tmp_path / "new.pbtxt"
    schema_file.proposed_path(path).write_text(NEW, encoding="utf-8")
    assert schema_file.accept(path) is None
    assert path.read_text(encoding="utf-8") == NEW


def test_accepting_nothing_is_refused(tmp_path: Path) -> None:
    """Without a proposal the curated file stays, and the error names the next command."""
    path = _curated(tmp_path, proposed=None)
    with pytest.raises(UsageError) as caught:
        schema_file.accept(path)
    assert "schema infer" in caught.value.hint
    assert path.read_text(encoding="utf-8") == OLD


def test_a_proposal_that_is_no_schema_is_not_accepted(tmp_path: Path) -> None:
    """A proposal edited into nonsense is refused with its line; the curated file is untouched."""
    path = _curated(tmp_path, proposed='feature { name: "fare" }\nfeatura { }\n')
    with pytest.raises(ConfigError) as caught:
        schema_file.accept(path)
    assert caught.value.place == f"{schema_file.proposed_path(path)}:2"
    assert path.read_text(encoding="utf-8") == OLD


def test_written_schemas_are_read_back(tmp_path: Path) -> None:
    """What write writes, with its comment and non-ASCII values, read reads."""
    schema = schema_pb2.Schema()
    schema.feature.add(name="ville", type=schema_pb2.BYTES, domain="villes")
    schema.string_domain.add(name="villes", value=["Orléans"])
    path = tmp_path / "deep" / "s.pbtxt"
    schema_file.write(path, schema, "First line.\nSecond line.")
    assert path.read_text(encoding="utf-8").startswith("# First line.\n# Second line.\n")
    assert "Orléans" in path.read_text(encoding="utf-8")
    assert read(path) == schema
