"""Photos on their way to the training loop: once each, in an order that the seed decides, decoded once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import DataError
from core.settings.images import AugmentSettings

pytestmark = pytest.mark.integration

SIDE_PX = 8
STILL = AugmentSettings(flip=False, shift_share=0.0, zoom_share=0.0, brightness_share=0.0, contrast_share=0.0)
LIVELY = AugmentSettings(flip=True, shift_share=0.2, zoom_share=0.2, brightness_share=0.2, contrast_share=0.2)


def square(encoded: Any, side_px: int) -> Any:
    """Returns a stored PNG of the right size as it is."""
    import tensorflow as tf

    return tf.ensure_shape(tf.io.decode_png(encoded, channels=3), [side_px, side_px, 3])


@pytest.fixture
def numbered(tmp_path: Path) -> Callable[..., Any]:
    """Writes photos whose pixels all hold their number, of class number % 3, and reads them with `read_split`."""
    import tensorflow as tf

    from pipeline.training import photos

    def make(
        count: int, files: int = 3, label: Callable[[int], int] = lambda number: number % 3, split: Any = "train"
    ) -> Any:
        for file in range(files):
            with tf.io.TFRecordWriter(str(tmp_path / f"train-{file}.gz"), "GZIP") as writer:
                for number in range(file, count, files):
                    pixels = np.full((SIDE_PX, SIDE_PX, 3), number, np.uint8)
                    example = tf.train.Example()
                    features = example.features.feature
                    features["image"].bytes_list.value.append(tf.io.encode_png(pixels).numpy())
                    features["label_index"].int64_list.value.append(label(number))
                    writer.write(example.SerializeToString())
        return photos.read_split([str(tmp_path / "train-*.gz")], "image", "label_index", split)

    return make


def shown(values: np.ndarray, labels: np.ndarray, batches: int, batch_size: int, seed: int) -> list[tuple[int, int]]:
    """Returns (value, label) of each example in the first training batches."""
    from pipeline.training import photos

    data = photos.training_batches(values, labels, batch_size, seed).take(batches)
    return [
        (int(value), int(label))
        for features, batch_labels in data
        for value, label in zip(
            features[photos.VALUES].numpy().reshape(batch_size, -1)[:, 0], batch_labels, strict=True
        )
    ]


@pytest.mark.parametrize("files", [pytest.param(1, id="one file"), pytest.param(7, id="more files than readers")])
def test_each_photo_is_read_once_with_its_label_and_always_in_the_same_order(
    numbered: Callable[..., Any], files: int
) -> None:
    """Labels are read in one pass and photos in another: they meet again, and a second reading changes nothing."""
    from pipeline.training import photos

    split = numbered(50, files)
    first, second = (
        np.concatenate([batch.numpy()[:, 0, 0, 0] for batch in photos.decoded(split, square, SIDE_PX, 16)])
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first % 3, split.labels)
    assert sorted(first) == list(range(50))


def test_a_part_of_a_split_is_its_first_photos(numbered: Callable[..., Any]) -> None:
    """Fewer photos are the same ones, with their labels."""
    from pipeline.training import photos

    split = numbered(20)
    pixels = photos.pixels(split.first(7), square, SIDE_PX)
    assert pixels.shape == (7, 1, SIDE_PX, SIDE_PX, 3)
    np.testing.assert_array_equal(pixels, photos.pixels(split, square, SIDE_PX)[:7])
    np.testing.assert_array_equal(pixels[:, 0, 0, 0, 0] % 3, split.first(7).labels)


@pytest.mark.parametrize("limit_bytes", [pytest.param(1 << 30, id="in memory"), pytest.param(0, id="in a file")])
def test_a_pass_shows_each_photo_once_and_the_seed_decides_the_order(
    numbered: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, limit_bytes: int
) -> None:
    """10 photos in batches of 4: five batches are two passes, each a permutation; equal seeds give equal batches."""
    from pipeline.training import photos, scratch

    monkeypatch.setattr(scratch, "MEMORY_LIMIT_BYTES", limit_bytes)
    split = numbered(10)
    values = photos.pixels(split, square, SIDE_PX)
    assert isinstance(values, np.memmap) is (limit_bytes == 0)
    seen = shown(values, split.labels, 5, 4, seed=1)
    assert sorted(seen[:10]) == sorted(seen[10:]) == [(number, number % 3) for number in range(10)]
    assert seen[:10] != seen[10:]
    assert shown(values, split.labels, 5, 4, seed=1) == seen != shown(values, split.labels, 5, 4, seed=2)


def test_each_view_is_shown_once_in_as_many_passes_as_there_are_views() -> None:
    """6 photos of 4 views: four passes show all 24, each pass one view of each photo."""
    values = np.arange(24, dtype=np.float16).reshape(6, 4, 1)
    seen = [value for value, _ in shown(values, np.arange(6), 8, 3, seed=5)]
    assert sorted(seen) == list(range(24))
    passes = [seen[start : start + 6] for start in range(0, 24, 6)]
    assert all(sorted(value // 4 for value in one) == list(range(6)) for one in passes)
    assert len({value % 4 for value in passes[0]}) > 1, "photos do not change their views in step"


def test_evaluation_sees_the_first_view_of_each_photo_once() -> None:
    """In order, the last batch smaller."""
    from pipeline.training import photos

    values = np.arange(14, dtype=np.float16).reshape(7, 2, 1)
    batches = list(photos.evaluation_batches(values, np.arange(7), 3))
    assert [len(labels) for _, labels in batches] == [3, 3, 1]
    seen = itertools.chain.from_iterable(features[photos.VALUES].numpy()[:, 0] for features, _ in batches)
    assert list(seen) == [0, 2, 4, 6, 8, 10, 12]


@pytest.mark.parametrize(
    ("split", "said", "hint"),
    [
        pytest.param("train", "2 of 9 train photos have no class", "needs a label", id="train"),
        pytest.param(
            "eval", "2 of 9 eval photos are of a class that the train split does not have", "ingest_report", id="eval"
        ),
    ],
)
def test_photos_of_unknown_classes_are_counted_and_refused(
    numbered: Callable[..., Any], split: str, said: str, hint: str
) -> None:
    """A class that the label map does not know is an error, never a class; what to do depends on the split."""
    with pytest.raises(DataError, match=said) as caught:
        numbered(9, label=lambda number: -1 if number in (3, 5) else 1, split=split)
    assert hint in caught.value.hint


def test_an_empty_or_absent_split_is_named(numbered: Callable[..., Any], tmp_path: Path) -> None:
    """A split without photos, or without files, is an error that says which."""
    from pipeline.training import photos

    with pytest.raises(DataError, match="the train split has no example"):
        numbered(0)
    with pytest.raises(DataError, match="the eval split has no file"):
        photos.read_split([f"{tmp_path}/nothing-*"], "image", "label_index", "eval")


@pytest.mark.parametrize("limit_bytes", [pytest.param(1 << 30, id="in memory"), pytest.param(0, id="in a file")])
def test_frozen_layers_run_over_every_view_and_say_how_far_they_are(
    numbered: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limit_bytes: int,
) -> None:
    """Every photo and view has its row, in the order of the labels; what float16 cannot hold is its largest number."""
    import tensorflow as tf

    from pipeline.training import activations, frozen, photos, scratch
    from pipeline.training.frozen import Frozen

    monkeypatch.setattr(scratch, "MEMORY_LIMIT_BYTES", limit_bytes)
    monkeypatch.setattr(frozen, "_BATCH", 8)
    monkeypatch.setattr(frozen, "_cores", lambda: 1)
    split = numbered(21)

    def forward(pixels: tf.Tensor) -> tf.Tensor:
        return tf.concat([tf.reduce_mean(pixels, axis=[1, 2]), tf.fill([tf.shape(pixels)[0], 1], 1e9)], axis=1)

    with caplog.at_level("INFO", "forebay.training"):
        network = Frozen(forward, [SIDE_PX, SIDE_PX, 3])
        kept = activations.of_photos(network, split, square, SIDE_PX, views=2, changes=LIVELY, seed=1)
    assert kept.shape == (21, 2, 4)
    assert kept.dtype == np.float16
    expected = photos.pixels(split, square, SIDE_PX)[:, 0].astype(np.float32).mean(axis=(1, 2))
    for view in range(2):
        np.testing.assert_allclose(kept[:, view, :3], expected, rtol=1e-3)
    assert (kept[..., 3] == np.finfo(np.float16).max).all()
    assert "21 of 21 photos (100 %)" in caplog.text
    doubled = activations.of_activations(Frozen(lambda rows: rows[:, :3] * 2.0, [4]), kept)
    np.testing.assert_allclose(doubled, kept[..., :3].astype(np.float32) * 2.0, rtol=1e-3)


def test_random_changes_are_a_function_of_the_seed() -> None:
    """Equal seeds change alike, other seeds otherwise, each photo in its own way, and pixels stay pixels."""
    import tensorflow as tf

    from pipeline.training import augment

    photos = tf.tile(tf.random.stateless_uniform([1, 16, 16, 3], [1, 2], maxval=255.0), [4, 1, 1, 1])
    changed = augment.change(photos, LIVELY, tf.constant([1, 2], tf.int64)).numpy()
    np.testing.assert_array_equal(changed, augment.change(photos, LIVELY, tf.constant([1, 2], tf.int64)))
    assert np.abs(changed - augment.change(photos, LIVELY, tf.constant([1, 3], tf.int64))).mean() > 1.0
    assert all(np.abs(changed[0] - changed[row]).mean() > 1.0 for row in range(1, 4))
    assert 0.0 <= changed.min() <= changed.max() <= 255.0


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        pytest.param({"shift_share": 0.25}, True, id="shift"),
        pytest.param({"zoom_share": 0.5}, True, id="zoom"),
        pytest.param({"brightness_share": 0.2}, False, id="brightness"),
        pytest.param({"contrast_share": 0.5}, False, id="contrast"),
    ],
)
def test_each_change_does_what_it_says_and_no_more(change: dict[str, float], moved: bool) -> None:
    """A dot in the middle stays where it is unless photos move; a plain photo's edges are repeated, not blackened."""
    import tensorflow as tf

    from pipeline.training import augment

    settings = STILL.model_copy(update=change)
    dots = np.full((8, 17, 17, 3), 100.0, np.float32)
    dots[:, 8, 8] = 160.0
    changed = augment.change(tf.constant(dots), settings, tf.constant([3, 4], tf.int64)).numpy()
    assert np.abs(changed - dots).max() > 5.0
    around = np.delete(changed.reshape(8, -1, 3), 8 * 17 + 8, axis=1)
    assert bool(np.ptp(around, axis=1).max() > 1.0) is moved
    if moved:
        assert changed.min() == pytest.approx(100.0, abs=0.01)


def test_mirroring_alone_is_exact_and_only_some_photos_are_mirrored() -> None:
    """Each photo comes out as it was or as its mirror image, to the bit."""
    import tensorflow as tf

    from pipeline.training import augment

    photos = tf.tile(tf.random.stateless_uniform([1, 9, 9, 3], [1, 2], maxval=255.0), [16, 1, 1, 1])
    settings = STILL.model_copy(update={"flip": True})
    changed = augment.change(photos, settings, tf.constant([1, 2], tf.int64)).numpy()
    upright, mirrored = photos.numpy()[0], photos.numpy()[0, :, ::-1]
    kinds = [(np.array_equal(one, upright), np.array_equal(one, mirrored)) for one in changed]
    assert set(kinds) == {(True, False), (False, True)}


def test_the_first_views_are_the_photo_and_its_mirror_image() -> None:
    """View 0 is the photo, view 1 its mirror image, to the bit; the next ones are changed, each otherwise."""
    import tensorflow as tf

    from pipeline.training import augment

    photos = tf.random.stateless_uniform([2, 9, 9, 3], [1, 2], maxval=255.0)
    views = [augment.view(photos, number, LIVELY, tf.constant([1, number], tf.int64)).numpy() for number in range(4)]
    np.testing.assert_array_equal(views[0], photos)
    np.testing.assert_array_equal(views[1], photos.numpy()[:, :, ::-1])
    assert np.abs(views[2] - views[3]).mean() > 1.0
    unmirrored = LIVELY.model_copy(update={"flip": False})
    assert not np.array_equal(augment.view(photos, 1, unmirrored, tf.constant([1, 1], tf.int64)), views[1])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param(STILL, 1, id="no changes"),
        pytest.param(STILL.model_copy(update={"flip": True}), 2, id="mirror only"),
        pytest.param(LIVELY, 8, id="random changes"),
    ],
)
def test_views_that_would_be_equal_are_not_computed(settings: AugmentSettings, expected: int) -> None:
    """Of 8 views only as many are made as differ."""
    from pipeline.training import augment

    assert augment.distinct_views(8, settings) == expected
