"""Verification: a version against its manifest, and this host against the one that pushed it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core import fingerprint
from core.errors import DataError
from core.manifest import Provenance
from serving.verify import verify_directory

pytestmark = pytest.mark.unit


def test_an_untouched_version_is_intact(push: Any) -> None:
    """Right after a push nothing differs, neither files nor host."""
    host = fingerprint.collect()
    result = verify_directory(Path(push(provenance=Provenance(host=host)).location), host)
    assert result.is_intact
    assert result.host == {}


@pytest.mark.parametrize("kind", ["changed", "missing", "unlisted"])
def test_each_kind_of_damage_is_named(push: Any, kind: str) -> None:
    """A changed byte of the same size, a lost file and an added file are each found and told apart."""
    directory = Path(push().location)
    path = directory / "assets" / "vocabulary"
    if kind == "changed":
        path.write_bytes(path.read_bytes().replace(b"cash", b"cast"))
    elif kind == "missing":
        path.unlink()
    else:
        path = directory / "assets" / "extra"
        path.write_bytes(b"")
    record = verify_directory(directory, {}).to_dict()
    assert record["intact"] is False
    found = {name: record[name] for name in ("changed", "missing", "unlisted") if record[name]}
    assert found == {kind: [path.relative_to(directory).as_posix()]}


def test_another_host_is_reported_and_is_no_damage(push: Any) -> None:
    """A version made on another CPU and TensorFlow is intact, and both differences are named with both values."""
    host = {"gpus": [{"name": "A10"}], "versions": {"tensorflow": "2.16.2"}, "tensorrt": {"reason": ""}}
    here = {"gpus": [], "versions": {"tensorflow": None}, "tensorrt": {"reason": "not found"}, "new": 1}
    result = verify_directory(Path(push(provenance=Provenance(host=host)).location), here)
    assert result.is_intact
    assert result.host == {
        "gpus": {"pushed": '{"name": "A10"}', "here": ""},
        "versions.tensorflow": {"pushed": "2.16.2", "here": None},
    }


def test_a_directory_without_a_manifest_is_refused(tmp_path: Path) -> None:
    """A directory that Forebay did not push cannot be verified, and the error says what is missing where."""
    with pytest.raises(DataError, match="no manifest here") as caught:
        verify_directory(tmp_path, {})
    assert caught.value.place.startswith(str(tmp_path))
