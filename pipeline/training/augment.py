"""Random changes of photos, as batched TensorFlow ops without state: equal seeds give equal changes."""

from __future__ import annotations

import tensorflow as tf

from core.settings.images import AugmentSettings

_WHITE = 255.0


def distinct_views(views: int, augment: AugmentSettings) -> int:
    """Returns how many of a photo's views differ: without random changes there is only the photo and its mirror."""
    if _changes(augment):
        return views
    return min(views, 2 if augment.flip else 1)


def view(pixels: tf.Tensor, number: int, augment: AugmentSettings, seed: tf.Tensor) -> tf.Tensor:
    """Returns one version of each photo, float32[batch, side, side, 3], 0 to 255.

    Args:
        pixels: float32[batch, side, side, 3], 0 to 255.
        number: 0 is the photo itself; 1 its mirror image, when `augment.flip`; the others are changed at random.
        augment: How far.
        seed: int64[2].
    """
    if number == 0:
        return pixels
    if number == 1 and augment.flip:
        return tf.reverse(pixels, axis=[2])
    return change(pixels, augment, seed)


def change(pixels: tf.Tensor, augment: AugmentSettings, seed: tf.Tensor) -> tf.Tensor:
    """Returns each photo changed at random, each in its own way, float32[batch, side, side, 3], 0 to 255.

    Args:
        pixels: float32[batch, side, side, 3], 0 to 255.
        augment: How far.
        seed: int64[2].
    """
    batch = tf.shape(pixels)[0]
    mirrored, x, y, zoom, brightness, contrast = tf.unstack(
        tf.random.stateless_uniform([6, batch], seed, minval=-1.0, maxval=1.0), axis=0
    )
    if augment.flip or augment.shift_share or augment.zoom_share:
        direction = tf.where(mirrored < 0.0, -1.0, 1.0) if augment.flip else tf.ones_like(mirrored)
        pixels = _moved(pixels, direction, x * augment.shift_share, y * augment.shift_share, zoom * augment.zoom_share)
    if augment.contrast_share:
        mean = tf.reduce_mean(pixels, axis=[1, 2], keepdims=True)
        pixels = mean + (pixels - mean) * _per_photo(1.0 + contrast * augment.contrast_share)
    if augment.brightness_share:
        pixels += _per_photo(brightness * augment.brightness_share * _WHITE)
    return tf.clip_by_value(pixels, 0.0, _WHITE)


def _changes(augment: AugmentSettings) -> bool:
    """Returns whether anything but mirroring is switched on."""
    return any((augment.shift_share, augment.zoom_share, augment.brightness_share, augment.contrast_share))


def _moved(pixels: tf.Tensor, direction: tf.Tensor, x: tf.Tensor, y: tf.Tensor, zoom: tf.Tensor) -> tf.Tensor:
    """Returns photos mirrored, zoomed around their middle and shifted; what is beyond an edge repeats the edge.

    Args:
        pixels: float32[batch, side, side, 3].
        direction: float32[batch], -1 mirrors left and right, 1 does not.
        x: float32[batch], shift as a share of the side; likewise `y`.
        y: float32[batch].
        zoom: float32[batch]; 0.1 shows a piece that is 1.1 times as large.
    """
    side = tf.cast(tf.shape(pixels)[1], tf.float32)
    middle = (side - 1.0) / 2.0
    none = tf.zeros_like(x)
    across, down = direction * (1.0 + zoom), 1.0 + zoom
    # Rows of the matrix that takes a pixel's place in the result to its place in the photo.
    transforms = tf.stack(
        [across, none, middle - across * middle + x * side, none, down, middle - down * middle + y * side, none, none],
        axis=1,
    )
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=pixels,
        transforms=transforms,
        output_shape=tf.shape(pixels)[1:3],
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="NEAREST",
    )


def _per_photo(values: tf.Tensor) -> tf.Tensor:
    """Returns float32[batch] as float32[batch, 1, 1, 1]."""
    return tf.reshape(values, [-1, 1, 1, 1])
