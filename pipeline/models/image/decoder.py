"""The one decoder of photos: training, serving and the tests get pixels from here and from nowhere else.

It is made of TensorFlow operations only, so that a SavedModel carries it. Kinds: JPEG, PNG, GIF (the first frame) and
BMP; TensorFlow 2.16 has no decoder of WebP. What the ingestion does to a photo is done here too, so that an original
and its ingested copy look alike: EXIF's orientation is applied, transparent pixels lie on white, a 16-bit sample v
becomes v / 257 rounded, four inks become RGB. Colour profiles are the exception: a graph cannot apply them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import tensorflow as tf

from pipeline.models.image import exif, formats, gif, header, octets

# What an error tells a client to do.
ADVICE = f"send a JPEG, PNG, GIF or BMP photo of at most {header.MAX_PIXELS // 1_000_000} megapixels"
# A large JPEG is decoded at a half, a quarter or an eighth of its size, in half the time, as long as it keeps this many
# times the pixels that are wanted.
_SPARE = 2
_RATIOS = (1, 2, 4, 8)
# More bytes than any string has.
_ALL = 2**62
# Says that four inks are stored inverted.
_ADOBE_SEGMENT = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"


def decode_square(encoded: tf.Tensor, side_px: int) -> tf.Tensor:
    """Returns one photo, upright, scaled into the middle of a white square; nothing is stretched or cut off.

    Args:
        encoded: string[], a JPEG, PNG, GIF or BMP.
        side_px: Side of the square, pixels.

    Returns:
        uint8[side_px, side_px, 3], RGB, rounded: what a cache of bytes holds is what serving sees.

    Raises:
        tf.errors.InvalidArgumentError: When run: the bytes are no such photo, it has too many pixels, or it is damaged.
    """
    head = header.read(encoded)
    with tf.control_dependencies([_refusal("the photo", head.problem)]):
        return _square(encoded, head, side_px)


def decode_batch(encoded: tf.Tensor, side_px: int) -> tf.Tensor:
    """Returns the photos of a batch as `decode_square` does, several at a time.

    Args:
        encoded: string[batch], each a JPEG, PNG, GIF or BMP; the batch may be empty.
        side_px: Side of the squares, pixels.

    Returns:
        uint8[batch, side_px, side_px, 3], RGB.

    Raises:
        tf.errors.InvalidArgumentError: When run: the first photo that cannot be decoded, by its row in the batch.
    """
    count = tf.size(encoded, tf.int64)

    def decoded(row: tf.Tensor, photo: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        head = header.read(photo)
        return row, head.problem, _square(photo, head, side_px)

    # A dataset, because that is the one place where a graph can go on after an operation failed: a decoder that finds
    # damage does not know the row, so the damaged photo is left out, and the gap tells the row.
    photos = tf.data.Dataset.from_tensor_slices((tf.range(count), encoded))
    photos = photos.map(tf.autograph.experimental.do_not_convert(decoded), num_parallel_calls=tf.data.AUTOTUNE)
    # One element more than there are photos: also an empty batch has to give something.
    blank = (count, "", tf.zeros([side_px, side_px, 3], tf.uint8))
    photos = photos.ignore_errors().concatenate(tf.data.Dataset.from_tensors(blank)).batch(count + 1)
    rows, problems, squares = photos.get_single_element()
    told = tf.tensor_scatter_nd_update(tf.fill([count + 1], "is damaged"), rows[:, tf.newaxis], problems)
    name = tf.strings.join(["row ", tf.strings.as_string(tf.argmax(told != "")), " of the batch"])
    with tf.control_dependencies([_refusal(name, tf.gather(told, tf.argmax(told != "")))]):
        return tf.ensure_shape(squares[:-1], [None, side_px, side_px, 3])


def _refusal(name: tf.Tensor | str, problem: tf.Tensor) -> tf.Operation:
    """Returns the operation that fails, in one line, where there is a problem."""
    return tf.debugging.Assert(problem == "", [tf.strings.join([name, " ", problem, ": ", ADVICE])])


def _square(encoded: tf.Tensor, head: header.Header, side_px: int) -> tf.Tensor:
    """Returns uint8[side_px, side_px, 3]; black and white for what has been refused."""
    stored = tf.maximum(tf.stack([head.facts.height, head.facts.width]), 1)
    longest = tf.reduce_max(stored)
    room = longest // (_SPARE * side_px)
    shrink = tf.where(head.kind == header.JPEG, tf.reduce_sum(tf.cast(room >= _RATIOS[1:], tf.int32)), 0)
    ratio = tf.cast(tf.gather(_RATIOS, shrink), tf.float32)
    size = tf.maximum(tf.cast(tf.round(side_px * stored / longest), tf.int32), 1)
    # What `tf.image.resize` does with antialias, but by the exact size: half of 225 is 112.5, decoded as 113.
    scaled = tf.raw_ops.ScaleAndTranslate(
        images=_pixels(encoded, head, shrink)[tf.newaxis],
        size=size,
        scale=tf.cast(size, tf.float32) * ratio / tf.cast(stored, tf.float32),
        translation=[0.0, 0.0],
        kernel_type="triangle",
        antialias=True,
    )[0]
    rounded = tf.cast(tf.clip_by_value(tf.round(scaled), 0.0, 255.0), tf.uint8)
    # Turned before the white is added: of an odd number of rows the larger half is below, whichever way up it was.
    return _padded(exif.upright(rounded, head.facts.orientation), side_px)


def _padded(photo: tf.Tensor, side_px: int) -> tf.Tensor:
    """Returns uint8[side_px, side_px, 3], a photo that is no larger than that, in the middle of white."""
    spare = side_px - tf.shape(photo)[:2]
    rows, columns = spare[0], spare[1]
    margins = [[rows // 2, rows - rows // 2], [columns // 2, columns - columns // 2], [0, 0]]
    return tf.ensure_shape(tf.pad(photo, margins, constant_values=255), [side_px, side_px, 3])


def _pixels(encoded: tf.Tensor, head: header.Header, shrink: tf.Tensor) -> tf.Tensor:
    """Returns uint8[height, width, 3] as stored; of a JPEG, at the size that `_RATIOS` has at `shrink`, int32[]."""
    branches = {
        header.REFUSED: lambda: tf.zeros([1, 1, 3], tf.uint8),
        header.JPEG: lambda: _jpeg(encoded, head.facts, shrink),
        header.PNG: lambda: _png(encoded, head.facts),
        header.GIF: lambda: _gif(encoded),
        header.BMP: lambda: _bmp(encoded, head.facts),
    }
    shaped = {kind: functools.partial(_shaped, branch) for kind, branch in branches.items()}
    return tf.switch_case(head.kind, shaped)


def _shaped(branch: Callable[[], tf.Tensor]) -> tf.Tensor:
    """Returns what a branch returns, in the one static shape that all branches share."""
    return tf.ensure_shape(branch(), [None, None, 3])


def _jpeg(encoded: tf.Tensor, facts: formats.Facts, shrink: tf.Tensor) -> tf.Tensor:
    """Returns uint8[height, width, 3] of a JPEG, decoded as exactly as Pillow decodes it."""

    def shrunk(marked: tf.Tensor, ratio: int) -> tf.Tensor:
        pixels = tf.io.decode_jpeg(marked, channels=3, ratio=ratio, dct_method="INTEGER_ACCURATE")
        return tf.ensure_shape(pixels, [None, None, 3])

    def decoded(marked: tf.Tensor) -> tf.Tensor:
        return tf.switch_case(shrink, [functools.partial(shrunk, marked, ratio) for ratio in _RATIOS])

    def likelier() -> tf.Tensor:
        # Four inks without Adobe's marker are stored either way. Read the wrong way, light colours are black ink.
        inverted = decoded(
            tf.strings.join([octets.piece(encoded, 0, 2), _ADOBE_SEGMENT, octets.piece(encoded, 2, _ALL)])
        )
        plain = decoded(encoded)
        brighter = tf.reduce_mean(tf.cast(plain, tf.float32)) > tf.reduce_mean(tf.cast(inverted, tf.float32))
        return tf.where(brighter, plain, inverted)

    return tf.cond(facts.unmarked_inks, likelier, lambda: decoded(encoded))


def _png(encoded: tf.Tensor, facts: formats.Facts) -> tf.Tensor:
    """Returns uint8[height, width, 3] of a PNG of any kind, over white where it is transparent."""
    # TensorFlow's own fourth channel is wrong for samples of fewer than 8 bits: it is asked for where there is one.
    return tf.cond(
        facts.transparent,
        lambda: _over_white(_samples(encoded, facts, 4)),
        lambda: _samples(encoded, facts, 3),
    )


def _samples(encoded: tf.Tensor, facts: formats.Facts, channels: int) -> tf.Tensor:
    """Returns uint8[height, width, channels] of a PNG. TensorFlow would cut the lower half of 16 bits off."""

    def rounded() -> tf.Tensor:
        # In 16 bits, in which each step can reuse the last one's memory: the photo may have 100 megapixels. The largest
        # values, which the rounding would carry over the end, are all 255.
        wide = tf.io.decode_png(encoded, channels, tf.uint16)
        return tf.cast((tf.minimum(wide, 65535 - 128) + 128) // 257, tf.uint8)

    return tf.cond(facts.depth == 16, rounded, lambda: tf.io.decode_png(encoded, channels))


def _over_white(rgba: tf.Tensor) -> tf.Tensor:
    """Returns uint8[height, width, 3] of uint8[height, width, 4]."""
    ink, cover = tf.cast(rgba[..., :3], tf.uint16), tf.cast(rgba[..., 3:], tf.uint16)
    # The sum is at most 255 * 255 + 127, which 16 bits hold.
    return tf.cast((ink * cover + 255 * (255 - cover) + 127) // 255, tf.uint8)


def _gif(encoded: tf.Tensor) -> tf.Tensor:
    """Returns uint8[height, width, 3], the first frame of a GIF on its canvas, over white where it is transparent."""
    place = gif.first_image(encoded)
    frame = tf.io.decode_image(gif.first_frame(encoded, place), channels=3, expand_animations=False)
    before = tf.cast(place.offset, tf.int32)
    after = tf.cast(place.canvas, tf.int32) - before - tf.shape(frame)[:2]
    margins = tf.pad(tf.stack([before, after], axis=1), [[0, 1], [0, 0]])
    covered = tf.pad(tf.ones_like(frame[..., :1], tf.bool), margins)
    return tf.where(covered, tf.pad(frame, margins), gif.background(encoded, place))


def _bmp(encoded: tf.Tensor, facts: formats.Facts) -> tf.Tensor:
    """Returns uint8[height, width, 3] of a BMP; its fourth channel, where there is one, is padding."""

    def indexed() -> tf.Tensor:
        # TensorFlow takes the indices of 8-bit files for greys; the palette has to be looked up.
        start = 14 + octets.number(octets.read(encoded, 14, 4), little_endian=True)
        palette = tf.reshape(octets.read(encoded, start, 4 * 256), [256, 4])[:, 2::-1]
        return tf.gather(tf.cast(palette, tf.uint8), tf.cast(tf.io.decode_bmp(encoded)[..., 0], tf.int32))

    return tf.cond(facts.depth == 8, indexed, lambda: tf.io.decode_bmp(encoded)[..., :3])
