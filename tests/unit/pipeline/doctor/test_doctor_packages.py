"""Installed packages held against the lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.doctor import packages
from pipeline.doctor.finding import Level

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[4]


def _by_name(lock: Path) -> dict[str, packages.Finding]:
    return {finding.name: finding for finding in packages.check_packages(lock)}


def test_every_pinned_part_is_listed_with_what_is_found_and_wanted() -> None:
    """The parts whose pins have reasons are all there, as installed by the lock."""
    found = _by_name(ROOT / "requirements" / "lock.txt")
    for name, version in {
        "tfx": "1.16.0",
        "tensorflow": "2.16.2",
        "tf-keras": "2.16.0",
        "apache-beam": "2.64.0",
        "kfp": "2.5.0",
    }.items():
        assert (found[name].found, found[name].wanted, found[name].level) == (version, version, Level.OK)


def test_another_version_of_a_pinned_part_stops_the_run_and_names_the_fix(tmp_path: Path) -> None:
    """A TensorFlow that is not the pinned one is a blocker, with the command that puts it right."""
    lock = tmp_path / "lock.txt"
    lock.write_text("tensorflow==2.17.0 \\\n    --hash=sha256:00\nclick==1.0\nno-such-package==1\n", encoding="utf-8")
    found = _by_name(lock)
    assert (found["tensorflow"].level, found["tensorflow"].wanted, found["tensorflow"].fix) == (
        Level.BLOCKER,
        "2.17.0",
        "make env",
    )
    assert found["click"].level is Level.WARNING
    assert found["lock"].found == "0 of 3 as locked; not: click, no-such-package, tensorflow"


def test_without_a_lock_the_packages_own_metadata_says_what_is_wanted(tmp_path: Path) -> None:
    """An installation from a wheel has no requirements folder."""
    found = _by_name(tmp_path / "absent.txt")
    assert (found["tfx"].wanted, found["tfx"].level) == ("1.16.0", Level.OK)
    assert (found["pydantic"].wanted, found["pydantic"].level) == (">=2", Level.OK)
    assert "lock" not in found


@pytest.mark.parametrize(
    ("line", "pins"),
    [
        pytest.param("a-b==1.0 \\", {"a-b": "1.0"}, id="with hashes below"),
        pytest.param("A.B_c==1!2.0.post1", {"a-b-c": "1!2.0.post1"}, id="name in another spelling"),
        pytest.param("x[extra]==3 ; python_version > '3'", {"x": "3"}, id="extra and marker"),
        pytest.param("# x==3\n    --hash=sha256:ab==c", {}, id="comment and hash"),
    ],
)
def test_pins_are_read_from_lock_lines(line: str, pins: dict[str, str]) -> None:
    """Names come out in the canonical spelling, whatever else stands on the line."""
    assert packages.read_pins(line) == pins


def test_the_first_copy_on_the_path_is_the_installed_one(tmp_path: Path) -> None:
    """Two folders with the same distribution: imports take the first."""
    for folder, version in (("first", "1.0"), ("second", "2.0")):
        (tmp_path / folder / f"Some_Name-{version}.dist-info").mkdir(parents=True)
    assert packages.installed_versions([str(tmp_path / "first"), str(tmp_path / "second")]) == {"some-name": "1.0"}


def test_this_interpreter_is_the_one_that_is_wanted() -> None:
    """Tests run on the locked Python, which the doctor must accept."""
    assert [finding.level for finding in packages.check_python()] == [Level.OK, Level.OK]
