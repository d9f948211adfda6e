"""Trees of photos from end to end: every file accounted for, splits without leakage, the same bytes every time."""

from __future__ import annotations

import json
import os
import random
import shutil
import tracemalloc

import pytest
from PIL import Image

from components.ingest import sources
from components.ingest.images import chunks
from components.ingest.images.ingestion import ingest_photos
from core.errors import DataError

pytestmark = pytest.mark.unit


def shop(photo, *, number: int = 12) -> dict[str, bytes]:
    """Returns a tree of two classes of different photos."""
    return {f"{label}/{i:02}.jpg": photo(f"{label}{i}") for label in ("tops/shirt", "hats") for i in range(number)}


def test_all_is_written(tree, photo, settings, ingested) -> None:
    """Good photos are all written, each class in its shares, and the report says so."""
    outcome = ingested(settings(tree(shop(photo, number=20))))
    report = outcome.report
    assert report.rows_read == 40
    assert report.rows_written == {"train": 32, "eval": 8}
    assert report.classes == {"hats": {"train": 16, "eval": 4}, "tops > shirt": {"train": 16, "eval": 4}}
    assert report.formats == {"jpeg": 40}
    assert {name: len(records) for name, records in outcome.records.items()} == report.rows_written
    assert outcome.quarantine == {}
    assert report.warnings == []
    assert report.split["leakage"]["groups_shared"] == 0
    stored = json.loads((outcome.folder / "report" / "ingest_report.json").read_text())
    assert stored == json.loads(json.dumps(report.to_dict()))


def odd_files(photo, picture, encoded) -> dict[str, tuple[bytes, str]]:
    """Returns twenty files that cannot be used, with what the quarantine says of each."""
    jpeg, png = photo("odd"), encoded(picture("odd"), "PNG")
    return {
        "hats/empty.jpg": (b"", "empty (0 bytes)"),
        "hats/page.jpg": (b"<html><body>404 Not Found", "an HTML page"),
        "hats/drawing.png": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG drawing"),
        "hats/data.json": (b'{"a": 1}', "text"),
        "hats/manual.pdf": (b"%PDF-1.4", "a PDF document"),
        "hats/all.zip": (b"PK\3\4....", "a ZIP archive"),
        "hats/phone.heic": (b"\0\0\0\x18ftypheic", "an HEIC photo"),
        "hats/new.avif": (b"\0\0\0\x1cftypavif", "an AVIF photo"),
        "hats/clip.mp4": (b"\0\0\0\x20ftypisom", "a video"),
        "hats/lfs.jpg": (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        "hats/zeros.jpg": (b"\0" * 999, "nothing but zero bytes"),
        "hats/layers.psd": (b"8BPS\0\1", "a Photoshop document"),
        "hats/site.ico": (b"\0\0\1\0\1\0", "an icon or cursor"),
        "hats/half.jpg": (jpeg[: len(jpeg) // 2], "damaged jpeg"),
        "hats/half.png": (png[: len(png) // 2], "damaged png"),
        "hats/head.jpg": (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "damaged jpeg"),
        "hats/huge.png": (png[:16] + b"\0\1\x86\xa0\0\1\x86\xa0" + png[24:], "damaged png"),
        "hats/big.jpg": (encoded(picture(1, (400, 300))), "400 x 300 pixels are more than"),
        "hats/float.tif": (encoded(Image.new("F", (8, 8)), "TIFF"), "floats"),
        "loose.jpg": (photo("loose"), "no class folder"),
    }


def test_twenty_odd_files_among_good_ones(tree, photo, picture, encoded, settings, ingested) -> None:
    """I01, I02: the good photos are written, and each odd file is in the quarantine with its own reason."""
    odd = odd_files(photo, picture, encoded)
    assert len(odd) == 20
    root = tree({**shop(photo), **{name: data for name, (data, _) in odd.items()}})
    outcome = ingested(settings(root, {"max_pixels": 100_000}, max_bad_share=0.5))
    assert outcome.quarantine.keys() == odd.keys()
    for name, (_, reason) in odd.items():
        assert reason in outcome.quarantine[name], name
    assert sum(outcome.report.rows_written.values()) == 24
    assert outcome.report.rows_set_aside == 20
    assert outcome.report.balances()
    folders = {folder["name"]: folder["rows_set_aside"] for folder in outcome.report.folders}
    assert folders == {".": 1, "hats": 19, "tops/shirt": 0}


def test_conversions_and_kinds_are_counted(tree, photo, picture, encoded, settings, ingested) -> None:
    """I01: files of other kinds named .jpg are accepted, and what was done to each is counted."""
    exif = Image.Exif()
    exif[0x0112] = 6
    more = {
        "hats/png.jpg": encoded(picture("png"), "PNG"),
        "hats/gif.jpg": encoded(picture("gif"), "GIF", save_all=True, append_images=[picture("gif2")]),
        "hats/webp.jpg": encoded(picture("webp"), "WEBP"),
        "hats/cmyk.jpg": encoded(picture("cmyk").convert("CMYK")),
        "hats/alpha.png": encoded(picture("alpha").convert("RGBA"), "PNG"),
        "hats/turned.jpg": encoded(picture("turned"), exif=exif),
        "hats/large.jpg": encoded(picture("large", (200, 100))),
    }
    report = ingested(settings(tree({**shop(photo), **more}), {"max_side_px": 128})).report
    assert report.rows_set_aside == 0
    assert report.formats == {"gif": 1, "jpeg": 27, "png": 2, "webp": 1}
    assert report.converted == {
        "cmyk": 1,
        "16bit": 0,
        "palette": 1,
        "alpha": 1,
        "profile": 0,
        "oriented": 1,
        "animated": 1,
        "resized": 1,
    }


def test_exact_copies(tree, photo, settings, ingested) -> None:
    """A copy in the same class is left out and counted; a photo in two classes is set aside wherever it is."""
    files = shop(photo)
    files |= {"hats/copy.jpg": files["hats/00.jpg"], "hats/wrong.jpg": files["tops/shirt/03.jpg"]}
    outcome = ingested(settings(tree(files), max_bad_share=0.2))
    assert outcome.report.duplicates == 1
    assert sum(outcome.report.rows_written.values()) == 23
    assert outcome.report.balances()
    assert outcome.quarantine.keys() == {"hats/wrong.jpg", "tops/shirt/03.jpg"}
    assert "the same photo is in" in outcome.quarantine["hats/wrong.jpg"]
    paths = [record for records in outcome.records.values() for record in records if b"hats/copy.jpg" in record]
    assert paths == []


def test_look_alikes_stay_in_one_split(tree, picture, encoded, settings, ingested) -> None:
    """The same picture in two sizes and qualities is never in two splits, whichever seed of several draws them."""
    files = {}
    for i in range(30):
        image = picture(f"p{i}", (200, 160))
        files[f"hats/{i}-large.jpg"] = encoded(image, quality=95)
        files[f"hats/{i}-small.jpg"] = encoded(image.resize((100, 80)), quality=80)
    root, drawn = tree(files), set()
    for seed in ("a", "b", "c", "d"):
        data = settings(root)
        data = data.model_copy(update={"split": data.split.model_copy(update={"seed": seed})})
        outcome = ingested(data, f"out-{seed}")
        assert outcome.report.groups["families"] == 30
        assert outcome.report.split["leakage"]["near_duplicates_shared"] == 0
        held = {name for name in files if any(f"{name}".encode() in record for record in outcome.records["eval"])}
        assert len(held) == 12
        assert {name.replace("-large", "-small") for name in held if "-large" in name} <= held
        drawn.add(frozenset(held))
    assert len(drawn) == 4


def test_product_ids(tree, photo, settings, ingested) -> None:
    """I08: with a pattern, five photos of each product stay together; one without an id is said."""
    files = {f"hats/p{i // 5}_{i % 5}.jpg": photo(f"hat{i}") for i in range(50)} | {"hats/other.jpg": photo("other")}
    outcome = ingested(settings(tree(files), {"group_pattern": r"^(p\d+)_"}))
    leakage = outcome.report.split["leakage"]
    assert (leakage["groups_checked"], leakage["groups_shared"]) == (11, 0)
    assert outcome.report.rows_written["eval"] in (10, 11)
    assert any("1 of 51 photos have no product id, such as hats/other.jpg" in w for w in outcome.report.warnings)


def test_manifest(tree, photo, settings, ingested) -> None:
    """A manifest gives classes and products, and what it lists in vain is counted."""
    files = {f"{i}.jpg": photo(i) for i in range(20)}
    rows = "".join(f"{i}.jpg,{'tops/shirt' if i % 2 else 'hats'},p{i // 4}\n" for i in range(21))
    root = tree({**files, "list.csv": b"path,label,group\n" + rows.encode()})
    outcome = ingested(settings(root, {"manifest": "list.csv"}, max_bad_share=0.1))
    assert outcome.quarantine == {"20.jpg": "there is no such file (line 22 of the manifest)"}
    assert set(outcome.report.classes) == {"hats", "tops > shirt"}
    assert outcome.report.groups["products"] == 5
    assert outcome.report.rows_read == 21


def test_equal_photos_give_equal_bytes(tree, photo, settings, ingested) -> None:
    """Order of files, their times, the number of cores and where they lie change no byte of the splits."""
    files = shop(photo)
    first = ingested(settings(tree(files), shards=2), "first").shards()
    shuffled = random.Random(3).sample(list(files.items()), len(files))
    root = tree(dict(shuffled), "elsewhere ü")
    available = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(available)})
    try:
        second = ingested(settings(root, shards=2), "second").shards()
    finally:
        os.sched_setaffinity(0, available)
    assert len(first) == 4
    assert first == second


def test_a_film_is_not_read_into_memory(tree, photo, settings, ingested) -> None:
    """What is no photo by its first bytes, and what is too large for one, is set aside without being held whole."""
    root = tree({**shop(photo), "hats/clip.mp4": b"\0\0\0\x20ftypisom", "hats/scan.jpg": photo("scan")})
    film_bytes, scan_bytes = 192 << 20, (256 << 20) + 1
    # Files with holes: they take no room on the disk.
    os.truncate(root / "hats/clip.mp4", film_bytes)
    os.truncate(root / "hats/scan.jpg", scan_bytes)
    data = settings(root, max_bad_share=0.1)
    tracemalloc.start()
    try:
        outcome = ingested(data)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert outcome.quarantine == {
        "hats/clip.mp4": "not a photo: a video",
        "hats/scan.jpg": "268,435,457 bytes are more than a photo has (268,435,456)",
    }
    assert peak_bytes < film_bytes // 2


def test_photos_that_change_during_a_run(tree, photo, settings, tmp_path) -> None:
    """A photo that was replaced after the digest was taken is noticed by what was decoded, and no work is left."""
    root = tree(shop(photo))
    data = settings(root)
    source = sources.resolve(str(root), kind="images", run_date=None)
    digest = sources.content_digest(source)
    shutil.copy(root / "hats/01.jpg", root / "hats/02.jpg")
    with pytest.raises(DataError, match="changed after this run began"):
        ingest_photos(
            data,
            source,
            source_digest=digest,
            split_uris={name: str(tmp_path / name) for name in data.split.shares},
            report_dir=str(tmp_path / "report"),
            work_dir=str(tmp_path),
        )
    assert not list(tmp_path.glob(".photos-*"))


def test_chunks_mix_classes(tree, photo) -> None:
    """Files are spread over chunks at random, the same every time, none lost."""
    entries = [chunks.Entry(f"/x/{i}", f"{'ab'[i // 200]}/{i}", "ab"[i // 200]) for i in range(400)]
    pieces = chunks.split_up(entries, "seed")
    assert pieces == chunks.split_up(entries[::-1], "seed")
    assert sorted(entry.name for piece in pieces for entry in piece.entries) == sorted(e.name for e in entries)
    assert {entry.label for entry in pieces[0].entries} == {"a", "b"}
