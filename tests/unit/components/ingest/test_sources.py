"""Which files a path means, which day, and when its digest changes."""

from __future__ import annotations

import datetime
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from components.ingest import sources, spans
from core.errors import ConfigError, DataError

pytestmark = pytest.mark.unit

DAY = datetime.date(2024, 5, 3)


def resolve(path: Path | str, run_date: datetime.date | None = None) -> sources.Source:
    """Returns the CSV source of a path."""
    return sources.resolve(str(path), kind="csv", run_date=run_date)


def names(source: sources.Source) -> list[str]:
    """Returns the file names of a source."""
    return [source.name_of(path) for path in source.files]


def test_folder_leaves_out_markers(write, tmp_path: Path) -> None:
    """Markers, hidden files and empty files are listed as skipped; data below sub-folders is found."""
    for name in ("in/b.csv", "in/a/c.csv", "in/_SUCCESS", "in/.hidden", "in/x.crc", "in/.git/d.csv"):
        write("data", name)
    write("", "in/empty.csv")
    source = resolve(tmp_path / "in")
    assert names(source) == ["a/c.csv", "b.csv"]
    assert {Path(path).name for path, _ in source.skipped} == {"_SUCCESS", ".hidden", "x.crc", ".git", "empty.csv"}


def test_glob(write, tmp_path: Path) -> None:
    """A glob takes what matches, sorted."""
    for name in ("b.csv", "a.csv", "c.txt"):
        write("data", name)
    assert names(resolve(tmp_path / "*.csv")) == ["a.csv", "b.csv"]


def test_a_named_file_is_data_whatever_its_name(write) -> None:
    """A file that is named outright is read even if it looks like a marker."""
    assert names(resolve(write("data", "_table.csv"))) == ["_table.csv"]


def test_nothing_there(tmp_path: Path) -> None:
    """A path that is not there is named."""
    with pytest.raises(DataError) as caught:
        resolve(tmp_path / "none.csv")
    assert caught.value.place == str(tmp_path / "none.csv")


def test_package_files_are_found_without_importing() -> None:
    """package:NAME/rest is a file inside a package, and the package is not imported, in a process that had not yet."""
    path = "package:tfx/examples/chicago_taxi_pipeline/data/simple/data.csv"
    assert os.path.getsize(resolve(path).files[0]) == 1922812
    code = (
        "import sys; from components.ingest import sources; "
        f"sources.resolve({path!r}, kind='csv', run_date=None); sys.exit('tfx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", ["package:no_such_thing/x.csv", "package:a.b/x.csv", "s3://bucket/x.csv"], ids=str)
def test_impossible_paths(path: str) -> None:
    """An unknown package and remote storage are config errors."""
    with pytest.raises(ConfigError):
        resolve(path)


def test_newest_span_without_a_date(write, tmp_path: Path) -> None:
    """Without a run date the highest number wins, not the last in the alphabet."""
    for span in ("2", "10", "9"):
        write("data", f"day-{span}/data.csv")
    source = resolve(tmp_path / "day-{SPAN}" / "data.csv")
    assert (source.span, names(source)) == (10, ["data.csv"])


@pytest.mark.parametrize(
    ("present", "wanted"),
    [(["20240502", "20240503"], 20240503), (["19845", "19846"], 19846)],
    ids=["written-as-days", "days-since-1970"],
)
def test_span_of_the_run_date(write, tmp_path: Path, present: list[str], wanted: int) -> None:
    """With a run date the span of that day is read."""
    for span in present:
        write("data", f"day-{span}/data.csv")
    assert resolve(tmp_path / "day-{SPAN}", DAY).span == wanted
    assert spans.span_of_date(DAY) == 19846


@pytest.mark.parametrize("span", ["20240501", "19844"], ids=["written-as-days", "days-since-1970"])
def test_a_day_without_data_is_refused(write, tmp_path: Path, span: str) -> None:
    """A day that has no data never falls back on an older span; the newest is named."""
    write("data", f"day-{span}/data.csv")
    with pytest.raises(DataError, match=rf"no data for 2024-05-03.*newest is {span}") as caught:
        resolve(tmp_path / "day-{SPAN}", DAY)
    assert caught.value.exit_code == 4


def test_date_tokens(write, tmp_path: Path) -> None:
    """A dated pattern reads its day, needs a date, and names the newest day when its own is missing."""
    write("data", "2024/05/03/a.csv")
    write("data", "2024/05/01/a.csv")
    pattern = tmp_path / "{YYYY}" / "{MM}" / "{DD}"
    assert resolve(pattern, DAY).span == 19846
    with pytest.raises(ConfigError, match=r"run\.date"):
        resolve(pattern)
    with pytest.raises(DataError, match="no data for 2024-05-02; newest is 2024-05-03"):
        resolve(pattern, datetime.date(2024, 5, 2))


def test_newest_version_of_the_span(write, tmp_path: Path) -> None:
    """Of the chosen span the newest version is read, even when another span has a newer one."""
    for name in ("1/v9", "2/v1", "2/v3"):
        write("data", f"{name}/data.csv")
    source = resolve(tmp_path / "{SPAN}" / "v{VERSION}")
    assert (source.span, source.version) == (2, 3)


@pytest.mark.parametrize(
    "pattern", ["{SPN}", "{SPAN}-{YYYY}{MM}{DD}", "{YYYY}-{MM}"], ids=["typo", "span-and-date", "no-day"]
)
def test_impossible_patterns(tmp_path: Path, pattern: str) -> None:
    """A misspelt token, two ways to name the span and half a date are config errors."""
    with pytest.raises(ConfigError):
        resolve(tmp_path / pattern, DAY)


def test_ambiguous_spans_are_refused(write, tmp_path: Path) -> None:
    """One span written in two ways is not guessed at."""
    write("data", "day-7/a.csv")
    write("data", "day-07/a.csv")
    with pytest.raises(DataError, match="more than once"):
        resolve(tmp_path / "day-{SPAN}")


def test_a_version_written_twice_is_refused(write, tmp_path: Path) -> None:
    """v1 and v01 of one span would give every row twice; an older version written twice is nobody's concern."""
    write("data", "2/v1/a.csv")
    write("data", "2/v01/a.csv")
    with pytest.raises(DataError, match="version 1 is there more than once: written 01 and 1"):
        resolve(tmp_path / "{SPAN}" / "v{VERSION}")
    write("data", "2/v2/a.csv")
    assert resolve(tmp_path / "{SPAN}" / "v{VERSION}").version == 2


@pytest.mark.parametrize(
    ("pattern", "full", "empty"),
    [
        ("day-{SPAN}/*.csv", "day-1", "day-2"),
        ("day-{SPAN}/v{VERSION}/*.csv", "day-1/v1", "day-2"),
        ("day-{SPAN}/v{VERSION}/*.csv", "day-1/v1", "day-1/v2"),
    ],
    ids=["span", "span-with-versions", "version"],
)
def test_an_older_folder_never_stands_in(write, tmp_path: Path, pattern: str, full: str, empty: str) -> None:
    """A newest span or version whose folder has nothing that fits is refused by name; a run date still chooses."""
    write("data", f"{full}/a.csv")
    (tmp_path / empty).mkdir(parents=True)
    with pytest.raises(DataError, match=r"has no file that fits \*\.csv") as caught:
        resolve(tmp_path / pattern)
    assert caught.value.place == str(tmp_path / empty)
    (tmp_path / empty).rmdir()
    assert names(resolve(tmp_path / pattern)) == ["a.csv"]


def test_a_stray_number_does_not_hide_the_day(write, tmp_path: Path) -> None:
    """One `day-7` beside folders named YYYYMMDD leaves the run date its folder."""
    for span in ("7", "20240502", "20240503"):
        write("data", f"day-{span}/a.csv")
    assert resolve(tmp_path / "day-{SPAN}", DAY).span == 20240503


def test_digest_looks_at_content_only(write, tmp_path: Path) -> None:
    """Touching and moving keep the digest; one byte of the same size and time changes it."""
    path = write("id\n1\n", "in/a.csv")
    before = sources.content_digest(resolve(tmp_path / "in"))
    times = (os.stat(path).st_atime, os.stat(path).st_mtime)
    os.utime(path, (1, 1))
    assert sources.content_digest(resolve(tmp_path / "in")) == before
    shutil.copytree(tmp_path / "in", tmp_path / "elsewhere ü")
    assert sources.content_digest(resolve(tmp_path / "elsewhere ü")) == before
    path.write_text("id\n2\n")
    os.utime(path, times)
    assert sources.content_digest(resolve(tmp_path / "in")) != before


def test_digest_sees_names(write, tmp_path: Path) -> None:
    """Content that moves from one file to another is other content."""
    write("x", "in/a.csv")
    write("y", "in/b.csv")
    write("y", "other/a.csv")
    write("x", "other/b.csv")
    digests = {sources.content_digest(resolve(tmp_path / name)) for name in ("in", "other")}
    assert len(digests) == 2


def test_links_to_folders_are_followed(write, tmp_path: Path) -> None:
    """A folder that lies elsewhere and is linked is read, and links inside it too."""
    write("a", "in/a.csv")
    write("b", "elsewhere/b.csv")
    write("c", "further/c.csv")
    (tmp_path / "in" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "deep").symlink_to(tmp_path / "further")
    assert names(resolve(tmp_path / "in")) == ["a.csv", "linked/b.csv", "linked/deep/c.csv"]


@pytest.mark.parametrize("target", [".", "in", "in/sub"], ids=["around-the-root", "the-root", "read-already"])
def test_links_in_a_circle_end_and_are_listed(write, tmp_path: Path, target: str) -> None:
    """A link to a folder that is read anyway is listed with the reason, and no row is read twice."""
    write("a", "in/a.csv")
    write("b", "in/sub/b.csv")
    write("x", "outside.csv")
    (tmp_path / "in" / "sub" / "z").symlink_to(tmp_path / target)
    source = resolve(tmp_path / "in")
    assert names(source) == ["a.csv", "sub/b.csv"]
    assert [(Path(path).name, "read already" in why) for path, why in source.skipped] == [("z", True)]


def test_a_linked_file_is_read_once(write, tmp_path: Path) -> None:
    """`latest.csv`, a link to a file of the same folder, is no second copy of its rows; a link to outside is data."""
    write("a", "in/2024-05-31.csv")
    write("b", "outside.csv")
    (tmp_path / "in" / "0-latest.csv").symlink_to("2024-05-31.csv")
    (tmp_path / "in" / "other.csv").symlink_to(tmp_path / "outside.csv")
    for path in (tmp_path / "in", tmp_path / "in" / "*.csv"):
        source = resolve(path)
        assert names(source) == ["2024-05-31.csv", "other.csv"]
        assert [(Path(path).name, "the same file as" in why) for path, why in source.skipped] == [
            ("0-latest.csv", True)
        ]


def test_a_link_to_nothing_is_refused(write, tmp_path: Path) -> None:
    """A link whose target is gone is an error, not a file less."""
    write("a", "in/a.csv")
    (tmp_path / "in" / "gone").symlink_to(tmp_path / "gone")
    with pytest.raises(DataError, match="readable link"):
        resolve(tmp_path / "in")
