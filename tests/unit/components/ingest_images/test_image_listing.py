"""Which files are photos of which class, by folder and by manifest."""

from __future__ import annotations

import json
import os
import unicodedata

import pytest

from components.ingest import sources
from components.ingest.images import listing
from core.errors import DataError

pytestmark = pytest.mark.unit


def labels(found: listing.Listing) -> dict[str, str]:
    """Returns the class of every entry by name."""
    return {entry.name: entry.label for entry in found.entries}


def test_folder_path_is_the_class(tree, photo) -> None:
    """I07: any depth is a class by its full path; the same last name under two parents is two classes."""
    names = ["menswear/shirt/1.jpg", "womenswear/shirt/2.jpg", "hats/3.jpg", "a/b/c/4.jpg"]
    found = listing.read(str(tree(dict.fromkeys(names, photo(1)))), manifest=None)
    assert labels(found) == {
        "a/b/c/4.jpg": "a > b > c",
        "hats/3.jpg": "hats",
        "menswear/shirt/1.jpg": "menswear > shirt",
        "womenswear/shirt/2.jpg": "womenswear > shirt",
    }
    assert found.warnings == ()


def test_system_files_are_ignored_and_listed(tree, photo) -> None:
    """I06: what systems and tools leave behind is no class and no photo, and is listed with a reason."""
    junk = [
        "tops/.ipynb_checkpoints/1-checkpoint.jpg",
        "tops/.DS_Store",
        "tops/Thumbs.db",
        "tops/desktop.ini",
        "tops/1.jpg.crdownload",
        "__MACOSX/._a.jpg",
        "@eaDir/x.jpg",
        "lost+found/y",
        "tops/._1.jpg",
    ]
    found = listing.read(str(tree({"tops/_DSC0001.JPG": photo(1), **dict.fromkeys(junk, photo(2))})), manifest=None)
    assert labels(found) == {"tops/_DSC0001.JPG": "tops"}
    assert {name for name, _ in found.ignored} == {
        "tops/.ipynb_checkpoints",
        "tops/.DS_Store",
        "tops/Thumbs.db",
        "tops/desktop.ini",
        "tops/1.jpg.crdownload",
        "__MACOSX",
        "@eaDir",
        "lost+found",
        "tops/._1.jpg",
    }
    assert all(reason for _, reason in found.ignored)


def test_odd_places(tree, photo) -> None:
    """A file beside the class folders is set aside; photos beside sub-folders are a class with a warning."""
    root = tree({"tops/1.jpg": photo(1), "tops/shirt/2.jpg": photo(2), "readme.txt": b"hello", "hats": None})
    os.symlink(root / "nowhere.jpg", root / "tops" / "dead.jpg")
    os.mkfifo(root / "tops" / "pipe.jpg")
    found = listing.read(str(root), manifest=None)
    assert labels(found) == {"tops/1.jpg": "tops", "tops/shirt/2.jpg": "tops > shirt"}
    assert {reject.file: reject.reason for reject in found.rejects} == {
        "readme.txt": "no class folder",
        "tops/dead.jpg": "a link to nothing",
        "tops/pipe.jpg": "not a regular file",
    }
    assert found.empty == (("hats", "hats"),)
    assert "'tops' is a class of its own too" in found.warnings[0]


def test_a_name_that_is_no_text_is_set_aside(tree, photo) -> None:
    """A file whose name is not UTF-8 is set aside under a name that can be shown."""
    root = tree({"tops/1.jpg": photo(1)})
    (root / "tops" / os.fsdecode(b"\xff.jpg")).write_bytes(photo(2))
    (reject,) = listing.read(str(root), manifest=None).rejects
    assert reject.file == "tops/\\xff.jpg"
    assert reject.reason == "its name is not UTF-8 text"


def test_composed_and_decomposed_letters_are_one_class(tree, photo) -> None:
    """NFC and NFD spellings of a folder are one class, with a warning; case and blanks only warn."""
    composed = unicodedata.normalize("NFC", "jupé")
    decomposed = unicodedata.normalize("NFD", "jupé")
    assert composed != decomposed
    names = [f"{composed}/1.jpg", f"{decomposed}/2.jpg", "Tops/3.jpg", "tops/4.jpg", "tops /5.jpg"]
    found = listing.read(str(tree(dict.fromkeys(names, photo(1)))), manifest=None)
    assert set(labels(found).values()) == {composed, "Tops", "tops", "tops "}
    assert sum("NFC, NFD" in warning for warning in found.warnings) == 1
    assert sum("'Tops', 'tops', 'tops '" in warning for warning in found.warnings) == 1


@pytest.mark.parametrize(
    ("folder", "problem"),
    [("a > b", "stands between"), ("> b", "stands between"), ("a\nb", "control character"), (" ", "is empty")],
)
def test_names_that_cannot_be_a_level_are_refused(tree, photo, folder: str, problem: str) -> None:
    """A folder name that could not be told from two levels, or not be shown, is refused by name."""
    with pytest.raises(DataError, match=problem) as caught:
        listing.read(str(tree({f"{folder}/1.jpg": photo(1)})), manifest=None)
    assert caught.value.hint == "rename it"


def test_a_tree_without_photos_is_named(tree) -> None:
    """I09: where photos are expected and none is, the error names the folders and what they hold."""
    root = tree({f"data/{name}.csv": b"a,b\n" for name in "abc"} | {"docs/x": b"text", "docs/y.pdf": b"%PDF-"})
    with pytest.raises(DataError, match="no file begins like a photo") as caught:
        sources.resolve(str(root), kind="images", run_date=None)
    assert "data/ (3 .csv); docs/ (1 .pdf, 1 no extension)" in caught.value.headline
    assert caught.value.place == str(root)


def test_photos_beside_the_class_folders_are_named(tree, photo) -> None:
    """Photos directly in data.path, the commonest mistake, are called that and not a folder without photos."""
    root = tree({"1.jpg": photo(1), "2.jpg": photo(2), "about.txt": b"x", "docs/readme.txt": b"text"})
    with pytest.raises(DataError) as caught:
        listing.read(str(root), manifest=None)
    assert caught.value.headline == "no photo can be used: 3 of 4 files are set aside; the first: no class folder"
    assert caught.value.place == str(root / "1.jpg")
    assert caught.value.hint == "move photos to CLASS/PHOTO"


def test_loose_files_that_are_no_photos_are_no_photos(tree) -> None:
    """I09: other files directly in data.path are outlined as what they are."""
    with pytest.raises(DataError, match=r"no file begins like a photo; what is there: ./ \(1 .csv\)"):
        listing.read(str(tree({"table.csv": b"a,b\n"})), manifest=None)


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


@pytest.mark.parametrize("make_file", [True, False], ids=["a-file", "nothing"])
def test_photos_need_a_folder(tmp_path, make_file: bool) -> None:
    """A path to a file, or to nothing, is refused."""
    path = tmp_path / "photos.zip"
    if make_file:
        path.write_bytes(b"PK\3\4")
    with pytest.raises(DataError):
        sources.resolve(str(path), kind="images", run_date=None)


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


def test_digest_is_of_content_and_names(tree, photo) -> None:
    """Times and ignored files do not count; a byte, a name, an empty class folder and the manifest do."""
    root = tree({"a/1.jpg": photo(1), "b/2.jpg": photo(2), "list.csv": b"path,label\na/1.jpg,x\n"})

    def digest(manifest: str | None = None) -> str:
        return sources.content_digest(sources.resolve(str(root), kind="images", run_date=None, manifest=manifest))

    first, listed = digest(), digest("list.csv")
    os.utime(root / "a" / "1.jpg", (1, 1))
    (root / "a" / ".DS_Store").write_bytes(b"x")
    assert digest() == first
    seen = {first, listed}
    (root / "c").mkdir()
    seen.add(digest())
    (root / "a" / "1.jpg").write_bytes(photo(1) + b"\0")
    seen.add(digest())
    (root / "a").rename(root / "d")
    seen.add(digest())
    (root / "list.csv").write_text("path,label\nd/1.jpg,y\n")
    seen.add(digest("list.csv"))
    assert len(seen) == 6


def test_class_folder_counts_when_it_is_the_only_one(tree, photo) -> None:
    """Names are relative to data.path, not to the deepest common folder: that one is the class."""
    source = sources.resolve(str(tree({"only/1.jpg": photo(1)})), kind="images", run_date=None)
    assert [source.name_of(path) for path in source.files] == ["only/1.jpg"]
