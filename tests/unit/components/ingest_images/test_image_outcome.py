"""Photos that nothing can be trained on are refused: lost classes, too many bad files, empty splits."""

from __future__ import annotations

import unicodedata

import pytest

from core.errors import DataError

pytestmark = pytest.mark.unit


def shop(photo, *, number: int = 12) -> dict[str, bytes]:
    """Returns a tree of two classes of different photos."""
    return {f"{label}/{i:02}.jpg": photo(f"{label}{i}") for label in ("tops/shirt", "hats") for i in range(number)}


def test_empty_class_folder(tree, photo, settings, ingested) -> None:
    """I06: an empty class folder warns and is no class, or refuses the data, as configured."""
    root = tree({**shop(photo), "shoes/boots": None})
    report = ingested(settings(root)).report
    assert report.empty_classes == ["shoes/boots"]
    assert any("'shoes/boots' holds no photo" in warning for warning in report.warnings)
    assert "shoes > boots" not in report.classes
    with pytest.raises(DataError, match="class 'shoes > boots' has no photo") as caught:
        ingested(settings(root, {"empty_class": "refuse"}), "refused")
    assert caught.value.place == str(root / "shoes/boots")


def test_a_class_of_bad_photos_only(tree, photo, settings, ingested) -> None:
    """A class that lost every photo to the quarantine is said to be gone."""
    report = ingested(settings(tree({**shop(photo), "shoes/1.jpg": b"<html>"}), max_bad_share=0.1)).report
    assert "class 'shoes' is gone: every photo of it was set aside" in report.warnings


def test_refused_class_of_bad_photos_only(tree, photo, settings, ingested) -> None:
    """I06: a class whose every file is set aside is as empty as one without files, and refused by the same policy."""
    root = tree({**shop(photo), "shoes/1.jpg": b"<html>"})
    with pytest.raises(DataError, match="class 'shoes' has no photo left: every one was set aside") as caught:
        ingested(settings(root, {"empty_class": "refuse"}, max_bad_share=0.1))
    assert caught.value.place == str(root / "shoes")
    assert "quarantine.jsonl" in caught.value.hint


def test_refused_class_of_a_manifest(tree, photo, settings, ingested) -> None:
    """A class of which the manifest names only files that are not there is refused with its line."""
    files = {f"{i}.jpg": photo(i) for i in range(20)}
    rows = "".join(f"{name},hats\n" for name in files) + "gone.jpg,shoes\n"
    root = tree({**files, "list.csv": b"path,label\n" + rows.encode()})
    with pytest.raises(DataError, match="class 'shoes' has no photo left") as caught:
        ingested(settings(root, {"empty_class": "refuse", "manifest": "list.csv"}, max_bad_share=0.1))
    assert caught.value.place == f"{root / 'list.csv'}:22"


def test_empty_twin_of_a_filled_folder(tree, photo, settings, ingested) -> None:
    """An empty folder whose class has photos under its name in the other Unicode form is no empty class."""
    composed, decomposed = (unicodedata.normalize(form, "jupé") for form in ("NFC", "NFD"))
    files = {f"{decomposed}/{i}.jpg": photo(f"j{i}") for i in range(6)}
    root = tree({**shop(photo), **files, composed: None})
    report = ingested(settings(root, {"empty_class": "refuse"})).report
    assert composed in report.classes
    assert f"class folder {composed!r} holds no photo: those of {composed!r} lie elsewhere" in report.warnings


def test_bad_photo_of_a_manifest_is_found_by_its_place(tree, photo, settings, ingested) -> None:
    """The error's place is the photo's own path, which opens; the manifest's line is in the reason."""
    files = {f"x/{i}.jpg": photo(i) for i in range(9)} | {"x/bad.jpg": b"<html>"}
    rows = "".join(f"{name},hats\n" for name in files)
    root = tree({**files, "list.csv": b"path,label\n" + rows.encode()})
    with pytest.raises(DataError) as caught:
        ingested(settings(root, {"manifest": "list.csv"}))
    assert caught.value.place == str(root / "x/bad.jpg")
    assert caught.value.headline.endswith("the first: not a photo: an HTML page (line 11 of the manifest)")


@pytest.mark.parametrize(
    ("bad", "good", "said"),
    [
        pytest.param(2, 12, "2 of 26 files (7.69%) were set aside and data.max_bad_share allows 1.00%", id="too-many"),
        pytest.param(3, 0, "every file was set aside, 3 of 3; the first: damaged jpeg", id="all"),
    ],
)
def test_too_many_bad_files(tree, photo, settings, ingested, tmp_path, bad: int, good: int, said: str) -> None:
    """More bad files than allowed refuse the data with the first reason, and nothing but the report is left."""
    files = {f"a/{i}.jpg": b"\xff\xd8\xff\xe0" for i in range(bad)} | shop(photo, number=good)
    root = tree(files)
    with pytest.raises(DataError) as caught:
        ingested(settings(root))
    assert caught.value.headline.startswith(said)
    assert caught.value.place == str(root / "a/0.jpg")
    assert "quarantine.jsonl" in caught.value.hint
    left = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert left == {"ingest_report.json", "quarantine.jsonl"}


def test_a_split_without_photos(tree, photo, settings, ingested) -> None:
    """Too few photos for a split are refused."""
    with pytest.raises(DataError, match="split 'eval' got none of 1 photos"):
        ingested(settings(tree({"a/1.jpg": photo(1)})))
