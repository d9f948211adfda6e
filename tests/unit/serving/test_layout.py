"""The numbers that servers read in names, and the number that the next version gets."""

from __future__ import annotations

import pytest

from core.errors import EnvironmentProblem
from serving.layout import CLOCK_SKEW_S, Entry, newest, next_version, odd_names, published, served_number

pytestmark = pytest.mark.unit

NOW = 1_800_000_000


def ours(name: str, **more: bool) -> Entry:
    """Returns an entry that Forebay pushed."""
    return Entry(name, has_manifest=True, **more)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param("7", 7, id="plain"),
        pytest.param("001", 1, id="leading zeros"),
        pytest.param(" 7 ", 7, id="blanks"),
        pytest.param("20260101120000", 20260101120000, id="14 digits"),
        pytest.param("9223372036854775807", 2**63 - 1, id="largest int64"),
        pytest.param("9223372036854775808", None, id="past int64"),
        pytest.param("-7", None, id="negative"),
        pytest.param("v0.1", None, id="v0.1"),
        pytest.param("1_000", None, id="a Python number that C++ does not read"),
        pytest.param("\u0667", None, id="a digit of another script"),
        pytest.param("", None, id="empty"),
        pytest.param(".push-12", None, id="staging"),
    ],
)
def test_a_name_is_read_as_tensorflow_serving_reads_it(name: str, number: int | None) -> None:
    """Every name that TensorFlow Serving takes for a version is taken for that same version, and no other is."""
    assert served_number(name) == number


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([], NOW, id="nothing there: the clock"),
        pytest.param([ours(str(NOW))], NOW + 1, id="second push within one second"),
        pytest.param([ours(str(NOW + 3600))], NOW + 3601, id="clock set back an hour"),
        pytest.param([ours(str(NOW + 10 * CLOCK_SKEW_S))], NOW + 10 * CLOCK_SKEW_S + 1, id="clock was far ahead once"),
        pytest.param([Entry(str(NOW + 3600))], NOW + 3601, id="pushed by another tool, clock set back an hour"),
        pytest.param([Entry("001"), Entry("7", is_directory=False), Entry("v0.1")], NOW, id="small odd names"),
        pytest.param([ours(str(NOW + 5), is_complete=False)], NOW + 6, id="past a half-copied one"),
        pytest.param(
            [ours("20260101120001"), Entry("20260101120000")], 20260101120002, id="ours is past the foreign one"
        ),
    ],
)
def test_the_next_version_is_above_everything(entries: list[Entry], expected: int) -> None:
    """The next number is the clock's, or one past whatever a server would rank higher."""
    assert next_version(entries, NOW + 0.9, "here") == expected


@pytest.mark.parametrize("is_directory", [True, False], ids=["directory", "file"])
def test_a_name_that_would_win_for_ever_is_refused(is_directory: bool) -> None:
    """A 14-digit name of another tool stops the push, and the error names it and the way out."""
    entries = [ours("1799999999"), Entry("20260101120000", is_directory=is_directory)]
    with pytest.raises(EnvironmentProblem, match="20260101120000") as caught:
        next_version(entries, NOW, "/serving/taxi")
    assert caught.value.exit_code == 5
    assert caught.value.place == "/serving/taxi"
    assert "move it" in caught.value.hint


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        pytest.param(Entry("v0.1"), "no version", id="v0.1"),
        pytest.param(Entry("001"), "version 1 to TensorFlow Serving", id="001"),
        pytest.param(Entry("7", is_directory=False), "is a file", id="file named 7"),
        pytest.param(Entry("7"), "not pushed by Forebay", id="foreign"),
        pytest.param(Entry("7", is_complete=False), "no saved_model.pb", id="incomplete"),
    ],
)
def test_an_odd_name_is_warned_of(entry: Entry, words: str) -> None:
    """Each kind of name that a server reads otherwise than a person gets its own warning."""
    (warning,) = odd_names([ours("1800000000"), entry])
    assert words in warning
    assert repr(entry.name) in warning


def test_only_complete_versions_of_ours_are_published() -> None:
    """Foreign, incomplete and oddly written names are never counted as versions that Forebay pushed."""
    entries = [ours("5"), ours("9", is_complete=False), ours("007"), Entry("8"), ours("3")]
    assert published(entries) == [3, 5]
    assert newest(entries) == 5
    assert newest([]) is None
