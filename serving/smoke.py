"""Load a model the way TensorFlow Serving does, and ask it once, before anything is pushed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.errors import GateRefusedError
from serving.warmup import SIGNATURE


def smoke_test(model_dir: Path, input_name: str, examples: Sequence[bytes]) -> dict[str, list[int]]:
    """Loads a SavedModel into a session of its own and runs the examples through `serving_default`.

    Servers load the graph by its tag into a session. A model can load eagerly in Python and still fail there, and
    a warm-up record that fails makes a server reject the whole version.

    Args:
        model_dir: The SavedModel.
        input_name: Name of the signature's input.
        examples: Serialized tf.Examples, run as one batch; with none the model is only loaded.

    Returns:
        Output name to the shape of its answer.

    Raises:
        GateRefusedError: It does not load, or does not answer.
    """
    import tensorflow as tf

    try:
        # The Trainer may still hold the GPU's memory; take only what the model needs.
        options = tf.compat.v1.ConfigProto(gpu_options=tf.compat.v1.GPUOptions(allow_growth=True))
        with tf.Graph().as_default(), tf.compat.v1.Session(config=options) as session:
            loaded = tf.compat.v1.saved_model.load(session, [tf.saved_model.SERVING], str(model_dir))
            signature = loaded.signature_def[SIGNATURE]
            if not examples:
                return {}
            fetches = {name: info.name for name, info in signature.outputs.items()}
            answers = session.run(fetches, {signature.inputs[input_name].name: list(examples)})
    except (tf.errors.OpError, OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        first = str(error).strip().splitlines()
        raise GateRefusedError(
            f"a server could not use this model: {first[0][:300] if first else type(error).__name__}",
            place=str(model_dir),
            hint="Nothing was pushed. Export again and try `saved_model_cli run --signature_def serving_default`.",
        ) from error
    return {name: list(answer.shape) for name, answer in sorted(answers.items())}
