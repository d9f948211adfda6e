"""`make env` for real, on a clone whose lock holds a handful of packages, in a folder with spaces and accents."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from deploy.env.stamp import Stamp

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[3]
# What `forebay --version` and the installation itself need; pyfarmhash is the one that is compiled.
_PACKAGES = ("click", "packaging", "pyfarmhash", "setuptools")


def _reduced_lock(names: tuple[str, ...]) -> str:
    lock = (ROOT / "requirements" / "lock.txt").read_text(encoding="utf-8")
    blocks = [re.search(rf"^{name}==.*?(?=^\S|\Z)", lock, re.MULTILINE | re.DOTALL) for name in names]
    return "".join(block.group(0) for block in blocks if block)


def _make_env(clone: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "env", f"PYTHON={sys.executable}"],
        cwd=clone,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def _environment() -> dict[str, str]:
    """Returns this process's variables, with the uv of this checkout on the PATH where it has its own."""
    own = ROOT / ".tools" / "uv" / "bin"
    # Whatever make told this test run must not reach the make below it.
    variables = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return variables | {"PATH": f"{variables['PATH']}:{own}"}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed clone with a small lock."""
    root = tmp_path_factory.mktemp("clones") / "é à" / "fore bay"
    root.mkdir(parents=True)
    for name in ("core", "deploy", "pipeline", "requirements"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "setup.py"):
        shutil.copy(ROOT / name, root / name)
    (root / "requirements" / "lock.txt").write_text(_reduced_lock(_PACKAGES), encoding="utf-8")
    done = _make_env(root)
    if "package index cannot be reached" in done.stderr:
        pytest.skip("no package index here, and the packages are not in uv's cache")
    assert done.returncode == 0, done.stderr + (root / ".tools" / "env.log").read_text(encoding="utf-8")
    return root


def test_the_command_works_from_any_folder_name(clone: Path) -> None:
    """Console scripts and the editable install survive spaces and letters outside ASCII, from another directory."""
    done = subprocess.run(
        [clone / ".venv" / "bin" / "forebay", "--version"], cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("forebay, version ")


def test_bytecode_was_compiled_although_the_machine_switches_it_off(clone: Path) -> None:
    """The variable of the caller does not reach the installation."""
    assert list(clone.glob(".venv/lib/python3.10/site-packages/click/__pycache__/core.*.pyc"))


def test_nothing_is_done_when_nothing_changed(clone: Path) -> None:
    """The second call is silent and takes less than two seconds, also after every source was touched."""
    for path in (clone / "requirements").iterdir():
        path.touch()
    started = time.monotonic()
    done = _make_env(clone)
    assert (done.returncode, done.stdout) == (0, "")
    assert time.monotonic() - started < 2


def test_an_interrupted_installation_is_finished_by_the_next_call(clone: Path) -> None:
    """Killed in the middle, the environment is not trusted; the same command makes it whole."""
    (clone / ".venv" / "forebay-env.json").unlink()
    shutil.rmtree(clone / ".venv" / "lib" / "python3.10" / "site-packages" / "click")
    process = subprocess.Popen(
        [sys.executable, "-m", "deploy.env"],
        cwd=clone,
        env=_environment(),
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    unfinished = clone / ".venv" / "forebay-env.unfinished"
    deadline = time.monotonic() + 60
    while not unfinished.exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert unfinished.exists()
    assert not Stamp(clone, clone / ".venv").is_current()
    assert _make_env(clone).returncode == 0
    assert (clone / ".venv" / "lib" / "python3.10" / "site-packages" / "click" / "core.py").is_file()
    assert Stamp(clone, clone / ".venv").is_current()


def test_an_altered_package_is_refused_in_one_line(clone: Path) -> None:
    """A hash that does not fit stops the installation, names the cause, and nothing is called finished."""
    lock = clone / "requirements" / "lock.txt"
    good = lock.read_text(encoding="utf-8")
    lock.write_text(
        re.sub(r"click==[^\n]*(\n    --hash=[^\n]*)+", f"click==8.0.0 --hash=sha256:{'0' * 64}", good), encoding="utf-8"
    )
    try:
        done = _make_env(clone)
    finally:
        lock.write_text(good, encoding="utf-8")
    message = [line for line in done.stderr.splitlines() if line.startswith("env: ")]
    assert done.returncode != 0
    assert len(message) == 1
    assert message[0].startswith("env: a package did not have the locked hash while installing packages")
    assert _make_env(clone).returncode == 0


def test_a_wheel_holds_the_packages_and_the_files_they_read(tmp_path: Path) -> None:
    """base.yaml and the schemas lie beside the packages in the wheel, as they do in a checkout."""
    source = tmp_path / "source"
    for name in ("core", "components", "pipeline", "serving", "configs", "data", "requirements"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "setup.py", source)
    shutil.copy(ROOT / "pyproject.toml", source)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", str(tmp_path)],
        cwd=source,
        capture_output=True,
        check=True,
    )
    (wheel,) = tmp_path.glob("forebay-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        requirements = archive.read(metadata).decode("utf-8")
    assert {"configs/base.yaml", "configs/taxi.yaml", "data/schemas/taxi.pbtxt", "pipeline/cli/main.py"} <= names
    assert not [name for name in names if name.startswith(("tests/", "deploy/", "benchmarks/"))]
    assert "Requires-Dist: tfx==1.16.0" in requirements
    assert "Provides-Extra: gpu" in requirements
