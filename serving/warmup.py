"""Warm-up requests that a server replays when it loads a version, made of real examples."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from core.errors import DataError
from serving.layout import READY_FILE

SIGNATURE = "serving_default"
# TensorFlow Serving refuses to load a version with more.
MAX_RECORDS = 1000


def example_input(model_dir: Path) -> str:
    """Returns the name of the one input of `serving_default`, which takes serialized tf.Examples (string[batch]).

    The graph is read as a message and not loaded.

    Raises:
        DataError: There is no such signature, or it takes something else.
    """
    from tensorflow.core.framework import types_pb2
    from tensorflow.core.protobuf import saved_model_pb2

    place = str(model_dir / READY_FILE)
    saved = saved_model_pb2.SavedModel.FromString((model_dir / READY_FILE).read_bytes())
    serving = [graph for graph in saved.meta_graphs if "serve" in graph.meta_info_def.tags]
    if len(serving) != 1 or SIGNATURE not in serving[0].signature_def:
        raise DataError(f"no signature {SIGNATURE!r} under the tag 'serve'", place=place, hint="Export one.")
    inputs = serving[0].signature_def[SIGNATURE].inputs
    names = [str(name) for name in sorted(inputs)]
    if len(names) != 1 or inputs[names[0]].dtype != types_pb2.DT_STRING:
        raise DataError(
            f"{SIGNATURE!r} takes {', '.join(names) or 'nothing'}, not one string tensor of serialized tf.Examples",
            place=place,
            hint="Set serving.warmup_records to 0, or export the signature that design and clients expect.",
        )
    return names[0]


def warmup_file(model_name: str, input_name: str, examples: Sequence[bytes]) -> bytes:
    """Returns the content of the warm-up file: one PredictionLog a record, each with a batch of one example.

    Args:
        model_name: The name that the model is served under.
        input_name: Name of the signature's input.
        examples: Serialized tf.Examples, at most 1000.

    Raises:
        DataError: More examples than a server takes.
    """
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    if len(examples) > MAX_RECORDS:
        raise DataError(f"{len(examples)} warm-up records; servers take {MAX_RECORDS}", place="serving.warmup_records")
    with tempfile.TemporaryDirectory(prefix="forebay-warmup-") as directory:
        path = Path(directory) / "records"
        with tf.io.TFRecordWriter(str(path)) as writer:
            for example in examples:
                request = predict_pb2.PredictRequest()
                request.model_spec.name = model_name
                request.model_spec.signature_name = SIGNATURE
                request.inputs[input_name].CopyFrom(tf.make_tensor_proto([example], dtype=tf.string))
                log = prediction_log_pb2.PredictionLog(predict_log=prediction_log_pb2.PredictLog(request=request))
                writer.write(log.SerializeToString(deterministic=True))
        return path.read_bytes()


def read_examples(directory: Path, count: int) -> list[bytes]:
    """Returns the first serialized tf.Examples of a split's directory, in the order of its files.

    Args:
        directory: Holds TFRecord files, gzipped when their names end in .gz.
        count: How many at most.
    """
    import tensorflow as tf

    found: list[bytes] = []
    for path in sorted(item for item in directory.iterdir() if item.is_file() and not item.name.startswith(".")):
        if len(found) >= count:
            break
        compression = "GZIP" if path.suffix == ".gz" else ""
        records = tf.data.TFRecordDataset([str(path)], compression_type=compression).take(count - len(found))
        found += [bytes(record) for record in records.as_numpy_iterator()]
    return found
