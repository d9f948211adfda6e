"""Reading a schema: one message for what is not there and what is no schema."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import ConfigError
from core.schema import read

pytestmark = pytest.mark.unit


def test_a_missing_schema_names_the_command_that_makes_one(tmp_path: Path) -> None:
    """The first error of a newcomer says what to type and where a relative path begins."""
    with pytest.raises(ConfigError) as caught:
        read(tmp_path / "absent.pbtxt")
    assert "forebay schema infer" in caught.value.hint
    assert str(Path.cwd()) in caught.value.hint


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('feature { name: "fare" }\nfeatura { }\n', 2),
        ('feature {\n  name: "fare\n}\n', 2),
        ('feature {\n  name: "fare"\n  type: MONEY\n}\n', 3),
    ],
    ids=["unknown-field", "open-quote", "unknown-type"],
)
def test_text_that_is_no_schema_is_refused_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    """A misspelt field, a quote that is not closed and an unknown type are named where they stand."""
    path = tmp_path / "s.pbtxt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"not a schema: \D") as caught:
        read(path)
    assert caught.value.place == f"{path}:{line}"


def test_what_cannot_be_read_is_a_config_error(tmp_path: Path) -> None:
    """A folder and bytes that are no UTF-8 are refused by path, not with a traceback."""
    binary = tmp_path / "s.pbtxt"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path, binary):
        with pytest.raises(ConfigError, match="cannot be read") as caught:
            read(path)
        assert caught.value.place == str(path)


def test_reading_a_schema_loads_no_tensorflow(tmp_path: Path) -> None:
    """The protos come without TensorFlow and pandas, so that a check before a run stays quick."""
    path = tmp_path / "s.pbtxt"
    path.write_text('feature { name: "fare" }', encoding="utf-8")
    code = "import sys, pathlib; from core.schema import read; read(pathlib.Path(sys.argv[1])); print(*sys.modules)"
    command = [sys.executable, "-c", code, str(path)]
    loaded = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True).stdout
    assert not {"tensorflow", "tensorflow_data_validation", "pandas", "pyarrow", "tfx"} & set(loaded.split())
