"""Which files are photos of which class by their folders."""

from __future__ import annotations

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


@pytest.mark.parametrize("make_file", [True, False], ids=["a-file", "nothing"])
def test_photos_need_a_folder(tmp_path, make_file: bool) -> None:
    """A path to a file, or to nothing, is refused."""
    path = tmp_path / "photos.zip"
    if make_file:
        path.write_bytes(b"PK\3\4")
    with pytest.raises(DataError):
        sources.resolve(str(path), kind="images", run_date=None)


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
