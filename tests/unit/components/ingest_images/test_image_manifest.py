"""Which files are photos of which class by a manifest, and what is said of its mistakes."""

from __future__ import annotations

import json
import unicodedata

import pytest

from components.ingest.images import listing
from core.errors import DataError

pytestmark = pytest.mark.unit


def labels(found: listing.Listing) -> dict[str, str]:
    """Returns the class of every entry by name."""
    return {entry.name: entry.label for entry in found.entries}


def test_a_manifest_that_misses_every_photo(tree, photo) -> None:
    """A manifest whose every path misses is told by its first line, and not as a folder without photos."""
    root = tree({"x/1.jpg": photo(1), "list.csv": b"path,label\nphotos/x/1.jpg,a\nphotos/x/2.jpg,a\n"})
    with pytest.raises(DataError) as caught:
        listing.read(str(root), manifest="list.csv")
    assert caught.value.headline == (
        "no photo can be used: 2 of 2 files are set aside; the first: there is no such file (line 2 of the manifest)"
    )
    assert caught.value.place == str(root / "photos/x/1.jpg")
    assert "relative to data.path" in caught.value.hint


CSV = "path,label,group\nx/1.jpg,tops/shirt,p1\nx/2.jpg,tops/shirt,p1\n3.jpg,hats,\n"
JSONL = "".join(
    json.dumps(record) + "\n"
    for record in (
        {"path": "x/1.jpg", "label": "tops/shirt", "group": "p1"},
        {"path": "x/2.jpg", "label": "tops/shirt", "group": "p1"},
        {"path": "3.jpg", "label": "hats"},
    )
)


@pytest.mark.parametrize(("name", "text"), [("list.csv", CSV), ("list.csv", "\ufeff" + CSV), ("list.jsonl", JSONL)])
def test_manifest_names_the_classes(tree, photo, name: str, text: str) -> None:
    """CSV with or without a byte order mark, and JSONL, give path, class by levels, and product."""
    root = tree({"x/1.jpg": photo(1), "x/2.jpg": photo(2), "3.jpg": photo(3), "unlisted/4.jpg": photo(4)})
    (root / name).write_text(text, encoding="utf-8")
    found = listing.read(str(root), manifest=name)
    assert labels(found) == {"3.jpg": "hats", "x/1.jpg": "tops > shirt", "x/2.jpg": "tops > shirt"}
    assert [entry.group for entry in found.entries] == ["", "p1", "p1"]


def test_manifest_of_absolute_paths(tree, photo, monkeypatch: pytest.MonkeyPatch) -> None:
    """An absolute path inside data.path is the photo there, also where data.path is relative."""
    root = tree({"x/1.jpg": photo(1)})
    (root / "list.csv").write_text(f"path,label\n{root / 'x' / '1.jpg'},a\n")
    assert labels(listing.read(str(root), manifest="list.csv")) == {"x/1.jpg": "a"}
    monkeypatch.chdir(root.parent)
    assert labels(listing.read(root.name, manifest="list.csv")) == {"x/1.jpg": "a"}


def test_manifest_takes_classes_as_they_are_printed(tree, photo) -> None:
    """A class may be written as reports print it; both forms are one class, without a warning about its spelling."""
    root = tree(
        {"1.jpg": photo(1), "2.jpg": photo(2), "list.csv": b"path,label\n1.jpg,tops > shirt\n2.jpg,tops/shirt\n"}
    )
    found = listing.read(str(root), manifest="list.csv")
    assert labels(found) == {"1.jpg": "tops > shirt", "2.jpg": "tops > shirt"}
    assert found.warnings == ()


@pytest.mark.parametrize(("disk", "listed"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_manifest_paths_in_the_other_unicode_form(tree, photo, disk: str, listed: str) -> None:
    """A path with composed letters finds its file with decomposed ones, and the other way round, under its own name."""
    stored, written = (unicodedata.normalize(form, "jupé/é.jpg") for form in (disk, listed))
    root = tree({stored: photo(1), "list.csv": f"path,label\n{written},a\n{stored},a\n".encode()})
    found = listing.read(str(root), manifest="list.csv")
    assert labels(found) == {stored: "a"}
    assert [reject.reason for reject in found.rejects] == ["listed already on line 2 (line 3 of the manifest)"]


def test_manifest_rows_that_fit_no_file_are_set_aside(tree, photo) -> None:
    """A missing file, one listed twice and one listed under two classes are set aside with their lines."""
    text = "path,label\n1.jpg,a\n1.jpg,a\nnone.jpg,a\n2.jpg,a\n2.jpg,b\n"
    root = tree({"1.jpg": photo(1), "2.jpg": photo(2), "list.csv": text.encode()})
    found = listing.read(str(root), manifest="list.csv")
    assert labels(found) == {"1.jpg": "a"}
    assert [(reject.file, reject.reason) for reject in found.rejects] == [
        ("1.jpg", "listed already on line 2 (line 3 of the manifest)"),
        ("2.jpg", "listed as 'a' on line 5 and as 'b' on line 6 (line 5 of the manifest)"),
        ("2.jpg", "listed as 'a' on line 5 and as 'b' on line 6 (line 6 of the manifest)"),
        ("none.jpg", "there is no such file (line 4 of the manifest)"),
    ]
    assert found.found == 5


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        pytest.param("path,label\n../1.jpg,a\n", 2, "leads out of data.path", id="outside"),
        pytest.param("path,label\n/etc/passwd,a\n", 2, "leads out of data.path", id="absolute"),
        pytest.param("path,lable\n1.jpg,a\n", 1, "did you mean 'label'", id="typo"),
        pytest.param("path\n1.jpg\n", 1, "no column 'label'", id="no-label"),
        pytest.param("path,label\n1.jpg\n", 2, "1 cells, but the header has 2", id="short-row"),
        pytest.param("path,label\n1.jpg,\n", 2, "no text under 'label'", id="no-class"),
        pytest.param("path,label\n1.jpg,a//b\n", 2, "is empty", id="empty-level"),
    ],
)
def test_manifests_that_cannot_be_meant_are_refused(tree, photo, text: str, line: int, said: str) -> None:
    """A path out of the folder, a wrong column and an incomplete row are refused with the line."""
    root = tree({"1.jpg": photo(1), "list.csv": text.encode()})
    with pytest.raises(DataError) as caught:
        listing.read(str(root), manifest="list.csv")
    assert said in str(caught.value)
    assert caught.value.place == f"{root / 'list.csv'}:{line}"


@pytest.mark.parametrize("path", ["1\0.jpg", "\ud800.jpg"], ids=["zero-byte", "half-a-letter"])
def test_manifest_paths_that_no_file_can_have(tree, photo, path: str) -> None:
    """A path that no file system has a name for is refused with its line."""
    root = tree({"1.jpg": photo(1), "list.jsonl": json.dumps({"path": path, "label": "a"}).encode()})
    with pytest.raises(DataError, match="control character or half a letter under 'path'"):
        listing.read(str(root), manifest="list.jsonl")


def test_missing_manifest(tree, photo) -> None:
    """A manifest that is not there is named."""
    with pytest.raises(DataError, match="no such manifest"):
        listing.read(str(tree({"1.jpg": photo(1)})), manifest="list.csv")
