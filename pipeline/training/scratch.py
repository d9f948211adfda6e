"""Arrays that a training fills once and reads many times: in memory when small, else in a file without a name."""

from __future__ import annotations

import logging
import math
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import EnvironmentProblem

# An array up to this size is kept in memory.
MEMORY_LIMIT_BYTES = 1 << 30

_log = logging.getLogger("forebay.training")


def empty(shape: Sequence[int], dtype: npt.DTypeLike, memory_limit_bytes: int | None = None) -> npt.NDArray[Any]:
    """Returns an array to fill, in memory or mapped from a temporary file.

    The file loses its name as soon as it is open, so that its space is free again when the array is gone, also after
    a kill.

    Args:
        shape: Of the array.
        dtype: Of the array.
        memory_limit_bytes: Largest array that is kept in memory; None: MEMORY_LIMIT_BYTES.

    Raises:
        EnvironmentProblem: The temporary directory has no room for it.
    """
    limit = MEMORY_LIMIT_BYTES if memory_limit_bytes is None else memory_limit_bytes
    size_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if size_bytes <= limit:
        return np.empty(tuple(shape), dtype)
    with tempfile.TemporaryFile(prefix="forebay-") as file:
        try:
            # All of it now: writing to a mapped file on a full disk would kill the process without a word.
            os.posix_fallocate(file.fileno(), 0, size_bytes)
        except OSError as error:
            raise EnvironmentProblem(
                f"no room for a cache of {size_bytes / 2**20:,.0f} MiB: {error.strerror}",
                place=tempfile.gettempdir(),
                hint="free space there, or name another directory in the environment variable TMPDIR",
            ) from error
        _log.info("a cache of %.0f MiB is kept in a file in %s", size_bytes / 2**20, tempfile.gettempdir())
        return np.memmap(file, dtype, "r+", shape=tuple(shape))


def repeated(values: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Returns `count` rows, those of an array again and again, where an array of that many rows is kept.

    Args:
        values: [rows, ...], at least one row.
        count: How many rows to return.

    Raises:
        EnvironmentProblem: The temporary directory has no room for them.
    """
    if count == len(values):
        return values
    result = empty([count, *values.shape[1:]], values.dtype)
    for start in range(0, count, len(values)):
        result[start : start + len(values)] = values[: count - start]
    return result
