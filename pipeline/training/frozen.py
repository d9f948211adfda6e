"""A network that is only asked, never trained, as the fastest function that this machine has for it.

On a GPU that is TensorFlow. On a CPU it is TensorFlow Lite, whose XNNPACK kernels take less than half of the time for
small image networks (benchmarks/frozen.py). It holds the same float32 weights, and its answers are compared with
TensorFlow's before they are used.
"""

from __future__ import annotations

import logging
import os
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import tensorflow as tf

Rows = npt.NDArray[np.float32]
# float32[batch, ...] -> float32[batch, ...].
Forward = Callable[[tf.Tensor], tf.Tensor]

# Rows of one call of an interpreter: its shapes are fixed.
_PIECE = 8
# Rows of one call of the network, at least: more do not make it faster on a few cores, and each takes memory.
_BATCH = 32
# Rows that are asked of both before one is trusted.
_COMPARED = 2
# Largest difference, as a share of the largest answer; float32 sums in another order differ by about 1e-6.
_TOLERANCE = 1e-3

_log = logging.getLogger("forebay.training")


class Frozen:
    """A frozen network as a function of arrays: float32[rows, ...] to float32[rows, ...].

    Args:
        forward: The network.
        shape: Shape of one row.
    """

    def __init__(self, forward: Forward, shape: Sequence[int]) -> None:
        spec = tf.TensorSpec([None, *shape], tf.float32)
        self._plain = tf.function(forward, [spec], autograph=False)
        self._forward, self._shape = forward, tuple(shape)
        self._lite: _Interpreters | None = None
        self._is_decided = False

    @property
    def batch_size(self) -> int:
        """How many rows to ask for at once: enough to give every core a piece."""
        return max(_BATCH, _PIECE * _cores())

    @property
    def engine(self) -> str:
        """What answers, once the first rows were asked for."""
        return "TensorFlow Lite" if self._lite is not None else "TensorFlow"

    def __call__(self, rows: Rows) -> Rows:
        """Returns what the network makes of some rows, at least one."""
        if not self._is_decided:
            self._lite = self._trusted(rows[:_COMPARED])
            self._is_decided = True
        return self._lite(rows) if self._lite is not None else self._plain(rows).numpy()

    def _trusted(self, rows: Rows) -> _Interpreters | None:
        """Returns the network in TensorFlow Lite; None where TensorFlow itself is faster, or the two disagree."""
        if tf.config.list_logical_devices("GPU"):
            return None
        try:
            lite = _Interpreters(self._forward, self._shape)
            found = lite(rows)
        except Exception as error:  # The converter and its runtime raise whatever they stumble over.
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            _log.warning("frozen layers run in TensorFlow, which is slower: %s", reason)
            return None
        expected = self._plain(rows).numpy()
        difference = float(np.max(np.abs(found - expected))) / max(float(np.max(np.abs(expected))), 1e-6)
        if not difference <= _TOLERANCE:
            _log.warning("frozen layers run in TensorFlow: TensorFlow Lite's answers differ by %.2g", difference)
            return None
        return lite


def _cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


class _Interpreters:
    """One interpreter a core, each on one thread: several threads in one interpreter wait for each other.

    Args:
        forward: The network.
        shape: Shape of one row.
    """

    def __init__(self, forward: Forward, shape: tuple[int, ...]) -> None:
        spec = tf.TensorSpec([_PIECE, *shape], tf.float32)
        function = tf.function(forward, autograph=False).get_concrete_function(spec)
        # The converter also wants what owns the variables; the function does.
        content = tf.lite.TFLiteConverter.from_concrete_functions([function], function).convert()
        cores = _cores()
        # The last one used is the next one: what few pieces never need stays out of memory.
        self._free: queue.LifoQueue[tf.lite.Interpreter] = queue.LifoQueue()
        for _ in range(cores):
            interpreter = tf.lite.Interpreter(model_content=content, num_threads=1)
            interpreter.allocate_tensors()
            self._free.put(interpreter)
        self._pool = ThreadPoolExecutor(cores, thread_name_prefix="frozen")

    def __call__(self, rows: Rows) -> Rows:
        pieces = [rows[start : start + _PIECE] for start in range(0, len(rows), _PIECE)]
        return np.concatenate(list(self._pool.map(self._ask, pieces)))

    def _ask(self, piece: Rows) -> Rows:
        filled = piece
        if len(piece) < _PIECE:
            filled = np.zeros((_PIECE, *piece.shape[1:]), np.float32)
            filled[: len(piece)] = piece
        interpreter = self._free.get()
        try:
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], filled)
            interpreter.invoke()
            answer: Rows = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        finally:
            self._free.put(interpreter)
        return answer[: len(piece)]
