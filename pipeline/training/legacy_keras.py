"""Which Keras TensorFlow uses: the legacy one (tf_keras), in every process.

Keras 3 cannot fit under MultiWorkerMirroredStrategy, keeps different batch statistics on each replica and is refused
by the pruning tools, so `tf.keras` has to mean tf_keras. TensorFlow decides once, when `tf.keras` is first touched,
by an environment variable: this module has to run before that. Importing it is cheap and does not import TensorFlow.
"""

from __future__ import annotations

import os

from core.errors import EnvironmentProblem

VARIABLE = "TF_USE_LEGACY_KERAS"
_PACKAGE = "tf_keras"


def choose() -> None:
    """Makes this process, and the children that inherit its environment, use tf_keras."""
    os.environ[VARIABLE] = "1"


def install() -> None:
    """Makes sure that `tf.keras` is tf_keras, and stops autograph from rewriting Keras' own source code.

    TensorFlow 2.16 exempts `keras` from autograph but not `tf_keras`: without the exemption the first `fit` of every
    process spends more than ten seconds of CPU on converting library code that needs no conversion. Calling this
    twice changes nothing. It imports TensorFlow.

    Raises:
        EnvironmentProblem: TensorFlow bound `tf.keras` to another Keras before this module ran, or tf_keras is missing.
    """
    choose()
    import tensorflow as tf
    from tensorflow.python.autograph.core import config
    from tensorflow.python.autograph.core.config_lib import DoNotConvert

    try:
        owner = tf.keras.Model.__module__
    except ImportError as error:
        raise EnvironmentProblem(
            f"TensorFlow cannot load its legacy Keras: {error}",
            hint="the package tf-keras has to be installed in the version of TensorFlow; run `make env`",
        ) from error
    if owner.split(".")[0] != _PACKAGE:
        raise EnvironmentProblem(
            f"tf.keras is {owner!r}, not {_PACKAGE}",
            hint=f"set {VARIABLE}=1 before anything imports TensorFlow, or import pipeline.training.legacy_keras first",
        )
    if not any(getattr(rule, "_prefix", None) == _PACKAGE for rule in config.CONVERSION_RULES):
        config.CONVERSION_RULES = (DoNotConvert(_PACKAGE), *config.CONVERSION_RULES)


choose()
