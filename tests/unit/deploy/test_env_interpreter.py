"""How a Python 3.10 is found among shims, other versions and builds that lack parts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from core.errors import EnvironmentProblem
from deploy.env import interpreter

pytestmark = pytest.mark.unit


def _command(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def _answer(path: Path, **changes: object) -> Path:
    """Writes a command that answers the probe like a good Python 3.10, but for the changes."""
    good = {"path": str(path), "series": [3, 10], "version": "3.10.9", "implementation": "cpython"}
    answer = good | {"missing": [], "headers": True} | changes
    return _command(path, f"cat <<'END'\n{json.dumps(answer)}\nEND")


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose PATH and pyenv hold only what the test puts there."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    # `cat` and `echo` of the stand-ins.
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "cat").symlink_to("/bin/cat")
    return tmp_path


def _no_uv(bare: Path) -> str:
    return str(_command(bare / "uv", "exit 2"))


def test_this_interpreter_passes_the_real_probe() -> None:
    """The probe's own code runs on a real Python 3.10 and names the executable below the environment."""
    found, reason = interpreter.probe(sys.executable)
    assert reason == ""
    assert found is not None
    assert found.version.startswith("3.10.")
    assert ".venv" not in found.path


def test_a_shim_that_fails_is_passed_over_for_pyenvs_own_folder(bare: Path) -> None:
    """A version that pyenv once had leaves a failing `python3.10` on the PATH; the folder has the real one."""
    _command(bare / "path" / "python3.10", "echo 'pyenv: python3.10: command not found' >&2; exit 127")
    _answer(bare / "pyenv" / "versions" / "3.10.4" / "bin" / "python", version="3.10.4")
    _answer(bare / "pyenv" / "versions" / "3.10.13" / "bin" / "python", version="3.10.13")
    _answer(bare / "pyenv" / "versions" / "3.1.99" / "bin" / "python", version="3.1.99")
    assert interpreter.find(_no_uv(bare), dict(os.environ)).version == "3.10.13"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"series": [3, 11], "version": "3.11.2"}, "is cpython 3.11.2", id="another version"),
        pytest.param({"implementation": "pypy"}, "is pypy 3.10.9", id="another implementation"),
        pytest.param({"missing": ["bz2", "lzma"]}, "was built without bz2, lzma", id="parts missing"),
    ],
)
def test_unsuitable_pythons_are_named_with_the_reason(bare: Path, changes: dict[str, object], reason: str) -> None:
    """When nothing is left, the error says what was tried and why it would not do."""
    tried = _answer(bare / "path" / "python3.10", **changes)
    with pytest.raises(EnvironmentProblem) as problem:
        interpreter.find(_no_uv(bare), dict(os.environ))
    assert f"{tried}: {reason}" in problem.value.headline
    assert problem.value.exit_code == 5


def test_uv_is_asked_when_nothing_on_the_machine_will_do(bare: Path) -> None:
    """First what uv has, then what it can install."""
    managed = _answer(bare / "managed" / "python", version="3.10.16")
    marker = bare / "installed"
    uv = _command(
        bare / "uv",
        f'case "$2" in install) : > "{marker}";; find) test -e "{marker}" && echo "{managed}";; esac',
    )
    assert interpreter.find(str(uv), dict(os.environ)).path == str(managed)
    assert marker.exists()


def test_a_python_without_headers_is_kept_for_the_worst_case(bare: Path) -> None:
    """Distributions split Python.h off; such a Python is used when uv has no other, not before."""
    _answer(bare / "path" / "python3.10", version="3.10.12", headers=False)
    assert interpreter.find(_no_uv(bare), dict(os.environ)).version == "3.10.12"
    managed = _answer(bare / "managed" / "python", version="3.10.16")
    uv = _command(bare / "uv", f'echo "{managed}"')
    assert interpreter.find(str(uv), dict(os.environ)).version == "3.10.16"
