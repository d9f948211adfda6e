"""Folders of photos in, a pushed classifier out: the recipe clothing from end to end, on photos that are drawn here."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

# Class folder to the colour of what is drawn in it.
CLASSES = {
    "tops/shirt": (220, 40, 40),
    "tops/t-shirt": (40, 200, 60),
    "bottoms/shirt": (50, 60, 220),
    "hat": (230, 220, 40),
}
PHOTOS_A_CLASS = 24
ORIENTATION = 0x0112

FRESH = """
import json, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
raw = model.signatures["serving_raw"]
answers = {}
for path in sys.argv[2:]:
    try:
        answer = raw(image=tf.constant([open(path, "rb").read()]))
    except tf.errors.OpError as error:
        answers[path] = {"error": str(error)}
        continue
    answers[path] = {
        "label": answer["label"].numpy()[0].decode(),
        "parent": answer["parent"].numpy()[0].decode(),
        "parent_probability": float(answer["parent_probability"].numpy()[0]),
        "top": dict(zip(
            [label.decode() for label in answer["top_labels"].numpy()[0]],
            answer["top_probabilities"].numpy()[0].tolist(),
        )),
        "probabilities": answer["probabilities"].numpy()[0].tolist(),
    }
assert not [name for name in sys.modules if name.split(".")[0] in ("pipeline", "components", "core", "tfx")]
print(json.dumps(answers))
"""


def draw(colour: tuple[int, int, int], seed: int, size: tuple[int, int] = (120, 90)) -> Image.Image:
    """Returns a photo of one colour with a pattern of its own, so that no two look alike."""
    generator = np.random.default_rng(seed)
    pattern = Image.fromarray(generator.integers(60, 255, (7, 7), np.uint8)).resize(size, Image.Resampling.BICUBIC)
    shade = np.asarray(pattern, np.float32)[..., None] / 255
    return Image.fromarray((shade * np.array(colour)).astype(np.uint8))


def lopsided(size: tuple[int, int]) -> Image.Image:
    """Returns a photo whose right two fifths are of another class' colour, so that no two of its turns are alike."""
    photo, width = draw(CLASSES["bottoms/shirt"], 7777, size), size[0] * 3 // 5
    photo.paste(draw(CLASSES["tops/shirt"], 7778, size).crop((width, 0, *size)), (width, 0))
    return photo


def encoded(image: Image.Image, kind: str = "JPEG", **options: Any) -> bytes:
    """Returns the bytes of an image file."""
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def odd_files(root: Path) -> dict[str, str]:
    """Drops 20 odd or broken files among the photos; returns {path: word of the reason} of those to be set aside."""
    folder = root / "tops" / "shirt"
    good = encoded(draw(CLASSES["tops/shirt"], 900), quality=95)
    page = b"<!DOCTYPE html><html><body>404</body></html>"
    bad = {
        "empty.jpg": (b"", "empty"),
        "page.jpg": (page, "HTML"),
        "cut.jpg": (good[: len(good) // 2], "damaged jpeg"),
        "noise.jpg": (bytes(np.random.default_rng(1).integers(0, 255, 5000, np.uint8)), "not a photo"),
        "head.png": (encoded(draw((9, 9, 9), 901), "PNG")[:40], "damaged png"),
        "notes.txt": (b"shirts, blue", "text"),
        "table.csv": (b"a,b\n1,2\n", "text"),
        "film.mp4": (b"\x00\x00\x00\x18ftypmp42" + bytes(64), "video"),
        "paper.pdf": (b"%PDF-1.7\n" + bytes(64), "PDF"),
        "pack.zip": (b"PK\x03\x04" + bytes(64), "ZIP"),
    }
    for name, (content, _) in bad.items():
        (folder / name).write_bytes(content)
    (root / "stray.jpg").write_bytes(encoded(draw((1, 200, 200), 902)))
    red = CLASSES["tops/shirt"]
    odd = {
        "really_png.jpg": encoded(draw(red, 903), "PNG"),
        "really_gif.jpg": encoded(draw(red, 904), "GIF"),
        "really_webp.jpg": encoded(draw(red, 905), "WEBP"),
        "cmyk.jpg": encoded(draw(red, 906).convert("CMYK")),
        "alpha.png": encoded(draw(red, 907).convert("RGBA"), "PNG"),
        "grey16.png": encoded(Image.fromarray(np.asarray(draw(red, 908).convert("L"), np.uint16) * 257), "PNG"),
        "palette.png": encoded(draw(red, 909).quantize(16), "PNG"),
    }
    for name, content in odd.items():
        (folder / name).write_bytes(content)
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / ".ipynb_checkpoints" / "copy.jpg").write_bytes(good)
    (folder / "Thumbs.db").write_bytes(b"\xd0\xcf\x11\xe0")
    assert len(bad) + 1 + len(odd) + 2 == 20
    return {f"tops/shirt/{name}": word for name, (_, word) in bad.items()} | {"stray.jpg": "class folder"}


@pytest.fixture(scope="module")
def photo_run(
    empty_workplace: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, subprocess.CompletedProcess[str], dict[str, str]]:
    """A workplace of photos after one run, with 20 odd files among them; and those that had to be set aside."""

    @dataclasses.dataclass
    class PhotoWorkplace(type(empty_workplace)):  # type: ignore[misc]
        recipe: ClassVar[str] = "clothing"

        def sets(self) -> dict[str, object]:
            return {
                "data.path": "photos",
                "data.max_bad_share": 0.2,
                "data.split.shares": "{train: 0.75, eval: 0.25}",
                "data_gate.min_examples": 20,
                "classifier.image_px": 64,
                # Few photos: steps enough for the averages of batch normalization to follow what is fine-tuned.
                "training.batch_size": 16,
                "classifier.feature_epochs": 30,
                "classifier.top_k": 3,
                "evaluate.thresholds": "{accuracy: {min: 0.6}, worst_class_recall: {min: 0.1, min_examples: 3}}",
            }

    place = PhotoWorkplace(tmp_path_factory.mktemp("é photos"))
    root = place.path / "photos"
    for number, (name, colour) in enumerate(CLASSES.items()):
        (root / name).mkdir(parents=True)
        for photo in range(PHOTOS_A_CLASS):
            (root / name / f"{photo}.jpg").write_bytes(encoded(draw(colour, 1000 * number + photo)))
    set_aside = odd_files(root)
    return place, place.run(), set_aside


def report_of(place: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns the ingest report and the quarantine of the one ingestion."""
    [folder] = place.root.glob("*/ExampleGen/ingest_report/*")
    lines = (folder / "quarantine.jsonl").read_text(encoding="utf-8").splitlines()
    report: dict[str, Any] = json.loads((folder / "ingest_report.json").read_text(encoding="utf-8"))
    return report, [json.loads(line) for line in lines]


def model_of(place: Any) -> Path:
    """Returns the directory of the one pushed version."""
    [version] = [name for name in place.versions() if name.isdigit()]
    path: Path = place.path / "serving" / "forebay" / "clothing" / version
    return path


def classify(model: Path, *paths: Path) -> dict[str, dict[str, Any]]:
    """Returns {file name: answer} of a process that imports TensorFlow and nothing of ours."""
    command = [sys.executable, "-c", FRESH, str(model), *map(str, paths)]
    done = subprocess.run(command, cwd=model, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return {Path(path).name: answer for path, answer in json.loads(done.stdout.splitlines()[-1]).items()}


def test_photos_with_odd_files_among_them_become_a_pushed_classifier(photo_run: Any) -> None:
    """Exit 0, the verdict block names a version that is there; the graph has the nodes that a table's has."""
    place, done, _ = photo_run
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert any("VERDICT" in line and "pushed" in line for line in done.stdout.splitlines()[-4:])
    assert (model_of(place) / "saved_model.pb").is_file()
    assert set(place.states()) == {
        "ExampleGen", "ImportSchemaGen", "StatisticsGen", "DataGate", "Transform", "Trainer", "Evaluator", "Pusher",
    }  # fmt: skip


def test_the_quarantine_names_every_bad_file_and_the_counts_add_up(photo_run: Any) -> None:
    """Each file that is no photo is named with a reason; odd photos are in; what is hidden is listed."""
    place, _, set_aside = photo_run
    report, quarantine = report_of(place)
    reasons = {entry["file"].removeprefix("photos/"): entry["reason"] for entry in quarantine}
    assert set(reasons) == set(set_aside)
    assert [name for name, word in set_aside.items() if word not in reasons[name]] == []
    assert report["rows_read"] == 4 * PHOTOS_A_CLASS + 18
    assert report["rows_set_aside"] == len(set_aside)
    assert sum(report["rows_written"].values()) == 4 * PHOTOS_A_CLASS + 7
    ignored = json.dumps(report["ignored"])
    assert ".ipynb_checkpoints" in ignored
    assert "Thumbs.db" in ignored
    assert set(report["classes"]) == {"tops > shirt", "tops > t-shirt", "bottoms > shirt", "hat"}


def test_models_show_names_accuracy_worst_class_and_label_map(photo_run: Any) -> None:
    """The three things that a person asks of a classifier, from the manifest alone."""
    place, *_ = photo_run
    shown = place.call("models", "show", "clothing", "--set", "serving.root=serving").stdout
    assert "metric     accuracy 0." in shown or "metric     accuracy 1.0" in shown
    [worst] = [line for line in shown.splitlines() if line.startswith("  worst ")]
    assert any(label in worst for label in ("tops > shirt", "tops > t-shirt", "bottoms > shirt", "hat"))
    [place_of_map] = [line.split(maxsplit=2)[-1] for line in shown.splitlines() if line.startswith("  label map")]
    labels = json.loads((place.path / place_of_map).read_text(encoding="utf-8"))
    assert {entry["label"]: entry["parent"] for entry in labels["classes"]} == {
        "tops > shirt": "tops", "tops > t-shirt": "tops", "bottoms > shirt": "bottoms", "hat": "hat",
    }  # fmt: skip


def test_a_fresh_process_classifies_what_clients_send(photo_run: Any, tmp_path: Path) -> None:
    """JPEG, PNG and a phone photo's rotated twin are told alike, without its tag unlike; a WebP gets what to send."""
    place, *_ = photo_run
    upright = lopsided((160, 100))
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    sideways = upright.transpose(Image.Transpose.ROTATE_90)
    (tmp_path / "upright.jpg").write_bytes(encoded(upright, quality=98))
    (tmp_path / "rotated.jpg").write_bytes(encoded(sideways, quality=98, exif=exif))
    (tmp_path / "untagged.jpg").write_bytes(encoded(sideways, quality=98))
    (tmp_path / "photo.png").write_bytes(encoded(upright, "PNG"))
    (tmp_path / "photo.webp").write_bytes(encoded(upright, "WEBP"))
    names = ("upright.jpg", "rotated.jpg", "untagged.jpg", "photo.png", "photo.webp")
    answers = classify(model_of(place), *(tmp_path / name for name in names))
    upright_answer = answers["upright.jpg"]
    assert upright_answer["label"] == "bottoms > shirt"
    assert upright_answer["parent"] == "bottoms"
    assert len(upright_answer["top"]) == 3
    tolerance = 0.03
    moved = {
        name: np.abs(np.subtract(answers[name]["probabilities"], upright_answer["probabilities"])).max()
        for name in ("rotated.jpg", "photo.png", "untagged.jpg")
    }
    assert moved["rotated.jpg"] < tolerance
    assert moved["photo.png"] < tolerance
    assert moved["untagged.jpg"] > tolerance
    assert "JPEG" in answers["photo.webp"]["error"]


def test_a_second_run_reuses_everything_and_a_renamed_class_runs_again(photo_run: Any) -> None:
    """Touched files change nothing; a folder's name is content: its photos have another label."""
    place, *_ = photo_run
    for path in (place.path / "photos").rglob("*.jpg"):
        os.utime(path)
    again = place.run()
    assert again.returncode == 0, again.stdout + again.stderr
    assert set(place.states().values()) == {"cached"}
    (place.path / "photos" / "hat").rename(place.path / "photos" / "cap")
    try:
        preview = json.loads(place.run("--dry-run", "--output", "json").stdout)
    finally:
        (place.path / "photos" / "cap").rename(place.path / "photos" / "hat")
    states = {node["node"]: node["state"] for node in preview["nodes"]}
    assert states["ExampleGen"] == "would run"
    assert states["ImportSchemaGen"] == "cached"


def test_train_profile_prints_step_time_share_and_bound(photo_run: Any) -> None:
    """The three numbers for each phase of that run's training, as a table and as JSON."""
    place, *_ = photo_run
    call: Callable[..., Any] = place.call
    ask = ("train", "profile", "--steps", "3", "--set", "run.root=runs", "--set", "training.batch_size=8")
    as_json, as_table = call(*ask, "--output", "json"), call(*ask)
    assert as_json.returncode == 0, as_json.stderr
    assert as_table.returncode == 0, as_table.stderr
    phases = json.loads(as_json.stdout)["phases"]
    assert [phase["name"] for phase in phases] == ["features", "fine_tune"]
    for phase in phases:
        assert phase["batch_size"] == 8
        assert all(math.isfinite(phase[key]) and phase[key] > 0 for key in ("step_ms", "bound_ms", "ratio"))
        assert phase["ratio"] == pytest.approx(phase["step_ms"] / phase["bound_ms"])
        assert 0 <= phase["input_share"] < 1
    header, *rows = as_table.stdout.splitlines()
    assert re.split(r" {2,}", header)[:5] == ["phase", "batch", "step ms", "bound ms", "step/bound"]
    assert [row.split()[:2] for row in rows] == [["features", "8"], ["fine_tune", "8"]]
    assert all(float(number) > 0 for row in rows for number in row.split()[2:5])


def test_a_folder_without_photos_is_refused_by_what_it_holds(photo_run: Any) -> None:
    """Exit 4 before anything runs, naming the tree that was found (case I09)."""
    place, *_ = photo_run
    folder = place.path / "texts" / "shirts"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("no photo", encoding="utf-8")
    done = place.run("--set", "data.path=texts")
    assert done.returncode == 4
    assert "shirts" in done.stderr
    assert ".txt" in done.stderr
