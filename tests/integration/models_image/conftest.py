"""Photos that tests draw themselves, and a small classifier that is exported as the Trainer exports one."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

SCHEMA = Path(__file__).parents[3] / "data" / "schemas" / "clothing.pbtxt"
SIDE_PX = 48
ORIENTATION_TAG = 0x0112
# What a decoder of EXIF has to undo, by orientation.
STORED_BY = {
    2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}  # fmt: skip
# In the order of the label map: by falling frequency, equally frequent ones by falling name.
LABELS = ("tops > shirt", "tops > hoodie", "footwear > sandálky", "accessories > bag")
TRAIN = [LABELS[0]] * 5 + [LABELS[1]] * 3 + [LABELS[3], LABELS[2]] * 2
# Another order, a class fewer, and one that the train split does not have.
EVAL = ["accessories > bag", "hats > cap", "tops > hoodie", "tops > shirt", "tops > shirt"]


@dataclasses.dataclass(frozen=True)
class Photos:
    """Makes photos without any symmetry: smooth, with a dark corner and a stripe."""

    def draw(self, width: int = 300, height: int = 200, seed: int = 0) -> Image.Image:
        """Returns an RGB photo; another seed gives other colours."""
        y, x = np.mgrid[0:height, 0:width] / max(width, height)
        tone = np.random.default_rng(seed).uniform(0.5, 1.0, 3)
        waves = 128 + 90 * np.sin(9 * x + 4 * seed) * np.cos(7 * y)
        pixels = np.stack([waves, 255 * x, 255 * y], axis=-1) * tone
        pixels[: height // 4, : width // 5] *= 0.2
        pixels[:, width // 2 : width // 2 + width // 20] = 240
        return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))

    def encode(self, image: Image.Image, kind: str = "JPEG", **options: Any) -> bytes:
        """Returns an encoded photo; JPEGs of good quality."""
        stream = io.BytesIO()
        image.save(stream, kind, **({"quality": 95, "subsampling": 0} if kind == "JPEG" else {}), **options)
        return stream.getvalue()

    def on_its_side(self, image: Image.Image, orientation: int, kind: str = "JPEG") -> bytes:
        """Returns the photo as a camera stores it that was held in another way, with EXIF that says so."""
        stored = image.transpose(STORED_BY[orientation]) if orientation in STORED_BY else image
        exif = Image.Exif()
        exif[ORIENTATION_TAG] = orientation
        return self.encode(stored, kind, exif=exif.tobytes())

    def covered(self, square: np.ndarray, width: int, height: int) -> np.ndarray:
        """Returns the middle of a square as int64[height, width, 3]: a photo whose longer side is the square's."""
        rows, columns = (len(square) - height) // 2, (len(square) - width) // 2
        return square[rows : rows + height, columns : columns + width].astype(int)


@pytest.fixture(scope="session")
def photos() -> Photos:
    """A maker of photos."""
    return Photos()


@pytest.fixture(scope="session")
def graph_of() -> Callable[..., Any]:
    """Compiles a function of the decoder as a SavedModel holds it: one graph, for any bytes."""
    import tensorflow as tf

    def compiled(function: Callable[..., Any], *arguments: Any, batch: bool = False) -> Any:
        spec = tf.TensorSpec([None] if batch else [], tf.string)
        return tf.function(lambda encoded: function(encoded, *arguments), [spec], autograph=False)

    return compiled


def example(image: bytes | None, label: str | None) -> bytes:
    """Returns a serialized tf.Example as the ingestion writes it, without what is None."""
    import tensorflow as tf

    made = tf.train.Example()
    texts = {"image": image, "label": label and label.encode(), "parent": b"p", "path": b"a.jpg", "group": b"a.jpg"}
    for name, value in {**texts, "sha256": b"0" * 64, "format": b"jpeg"}.items():
        if value is not None:
            made.features.feature[name].bytes_list.value.append(value)
    for name in ("width_px", "height_px"):
        made.features.feature[name].int64_list.value.append(8)
    made.features.feature["brightness"].float_list.value.append(0.5)
    return made.SerializeToString()


@dataclasses.dataclass(frozen=True)
class Export:
    """A small classifier and what it was made from.

    Attributes:
        model_dir: The SavedModel.
        transform_dir: Transform's output.
        transformed: Transformed columns by split, as Transform gave them.
        example: Makes a serialized tf.Example of a photo and a label.
        logits: The network: float32[batch, side, side, 3] to float32[batch, classes].
    """

    model_dir: str
    transform_dir: str
    transformed: dict[str, dict[str, list[Any]]]
    example: Callable[[bytes | None, str | None], bytes]
    logits: Callable[[Any], Any]


@pytest.fixture(scope="session")
def export(photos: Photos, tmp_path_factory: pytest.TempPathFactory) -> Export:
    """A classifier of four classes, not trained: what it answers depends on where in the photo which colour is."""
    import tensorflow as tf
    import tensorflow_transform as tft

    from pipeline.models.image import preprocessing, signatures

    root = tmp_path_factory.mktemp("classifier")
    encoded = photos.encode(photos.draw(40, 30))
    splits = {
        name: [example(encoded, label) for label in labels] for name, labels in (("train", TRAIN), ("eval", EVAL))
    }
    transformed = _transform(splits, root)
    output = tft.TFTransformOutput(str(root / "graph"))
    weights = tf.Variable(tf.random.stateless_normal([6 * 6 * 3, len(LABELS)], seed=[3, 4]), name="weights")

    def logits(pixels: Any) -> Any:
        # White, which is around every photo, counts as nothing.
        pooled = tf.nn.avg_pool2d(1.0 - pixels / 255.0, SIDE_PX // 6, SIDE_PX // 6, "VALID")
        return tf.reshape(pooled, [-1, 6 * 6 * 3]) @ weights

    labels = preprocessing.label_map(output)
    module = signatures.ServingModule(logits, [weights], output, labels, SIDE_PX, top_k=3)
    tf.saved_model.save(module, str(root / "model"), signatures=module.signatures())
    labels.write(str(root / "model"))
    return Export(str(root / "model"), str(root / "graph"), transformed, example, logits)


def _transform(splits: dict[str, list[bytes]], root: Path) -> dict[str, dict[str, list[Any]]]:
    """Runs `preprocessing_fn` through Beam as the Transform node does: the train split is analyzed, all are changed."""
    import functools

    import apache_beam as beam
    import tensorflow_transform as tft
    import tensorflow_transform.beam as tft_beam
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2
    from tfx_bsl.tfxio import tf_example_record

    from pipeline.models.image.preprocessing import preprocessing_fn

    schema = text_format.Parse(SCHEMA.read_text(encoding="utf-8"), schema_pb2.Schema())
    source = tf_example_record.TFExampleBeamRecord("inmem", ["test"], schema=schema)
    adapter = source.TensorAdapterConfig()
    with beam.Pipeline() as pipeline, tft_beam.Context(temp_dir=str(root / "tmp")):
        batches = {
            split: (pipeline | f"Make{split}" >> beam.Create(rows, reshuffle=False))
            | f"Parse{split}" >> source.BeamSource()
            for split, rows in splits.items()
        }
        preprocess = functools.partial(preprocessing_fn, custom_config={})
        function = (batches["train"], adapter) | tft_beam.AnalyzeDataset(preprocess)
        function | tft_beam.WriteTransformFn(str(root / "graph"))
        tft.DatasetMetadata(schema) | tft_beam.WriteMetadata(str(root / "graph" / "metadata"), pipeline)
        for split, batch in batches.items():
            (data, _) = ((batch, adapter), function) | f"Apply{split}" >> tft_beam.TransformDataset(
                output_record_batches=True
            )
            table = data | f"Rows{split}" >> beam.Map(lambda batch: batch[0].to_pydict())
            table | f"Write{split}" >> beam.io.WriteToText(
                str(root / split), shard_name_template="", append_trailing_newlines=True
            )
    return {split: _columns((root / split).read_text(encoding="utf-8").splitlines()) for split in splits}


def _columns(lines: Sequence[str]) -> dict[str, list[Any]]:
    """Returns the columns in lines that each hold the text of a dict of columns."""
    import ast

    tables = [ast.literal_eval(line) for line in lines]
    return {name: [row[0] for table in tables for row in table[name]] for name in tables[0]}
