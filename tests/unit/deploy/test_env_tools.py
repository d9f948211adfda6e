"""Which installer and which compiler are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import EnvironmentProblem
from deploy.env import tools
from deploy.env.command import environment

pytestmark = pytest.mark.unit


def _command(path: Path, script: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    return folder


def test_a_new_enough_uv_on_the_path_is_used(path_folder: Path, tmp_path: Path) -> None:
    """What the machine has comes first."""
    uv = _command(path_folder / "uv", "echo 'uv 0.13.9 (abc 2026-01-01)'")
    assert tools.find_uv(tmp_path, tmp_path / "log") == str(uv)


@pytest.mark.parametrize("script", ["echo 'uv 0.1.30'", "exit 1", "echo nonsense"], ids=["old", "fails", "no version"])
def test_an_unusable_uv_on_the_path_is_passed_over(path_folder: Path, tmp_path: Path, script: str) -> None:
    """Ours under .tools is taken instead."""
    _command(path_folder / "uv", script)
    own = _command(tmp_path / ".tools" / "uv" / "bin" / "uv", "echo 'uv 0.13.9'")
    assert tools.find_uv(tmp_path, tmp_path / "log") == str(own)


def test_a_python_without_venv_and_pip_names_the_debian_package(
    path_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian splits both off; the line is what to type."""
    bare = _command(tmp_path / "python3", "exit 1")
    monkeypatch.setattr(tools.sys, "executable", str(bare))
    with pytest.raises(EnvironmentProblem) as error:
        tools.find_uv(tmp_path, tmp_path / "log")
    assert error.value.hint.endswith("apt-get install python3.10-venv")


def test_the_compiler_of_the_machine_is_named_by_what_is_there(path_folder: Path) -> None:
    """Half a compiler is none; clang counts where gcc is missing."""
    assert tools.find_compiler() is None
    _command(path_folder / "clang++")
    assert tools.find_compiler() is None
    _command(path_folder / "clang")
    assert tools.find_compiler() == {"CC": "clang", "CXX": "clang++"}


def test_a_chosen_compiler_is_respected(path_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CC and CXX of the caller win."""
    monkeypatch.setenv("CC", "icx")
    monkeypatch.setenv("CXX", "icpx")
    assert tools.find_compiler() == {"CC": "icx", "CXX": "icpx"}


def test_installers_do_not_see_another_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An active virtual environment, a PYTHONPATH or switched-off bytecode of the caller must not reach ours."""
    for name in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("PIP_INDEX_URL", "mirror")
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    variables = environment()
    assert not {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"} & set(variables)
    assert variables["UV_DEFAULT_INDEX"] == "mirror"
