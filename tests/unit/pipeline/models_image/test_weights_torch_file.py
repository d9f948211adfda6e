"""Reading torch's old weight format: files are made here by hand, without torch."""

from __future__ import annotations

import collections
import os
import pickle
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from core.errors import EnvironmentProblem
from pipeline.models.image import torch_file

pytestmark = pytest.mark.unit

MAGIC = 0x1950A86A20F9469CFC6C


class _Global:
    """Something that a pickle refers to by its name only; the module does not have to exist."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class _Tensor:
    """A tensor as torch pickles it: a call of a function on a storage, an offset, a shape and strides."""

    def __init__(self, storage: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.parts = (storage, offset, shape, strides, False, collections.OrderedDict())


class _Storage:
    def __init__(self, key: str, values: np.ndarray, kind: str = "FloatStorage", count: int | None = None) -> None:
        self.key, self.values, self.kind = key, values, kind
        self.count = len(values) if count is None else count


class _Pickler(pickle._Pickler):  # type: ignore[name-defined]
    """Writes globals by name and storages by persistent id, as torch does; pickle's Python half can be extended."""

    dispatch: ClassVar[dict[type, Any]] = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, _Storage):
            return ("storage", _Global("torch", value.kind), value.key, "cpu", value.count, None)
        return None

    def save_global_name(self, value: _Global) -> None:
        self.write(pickle.GLOBAL + f"{value.module}\n{value.name}\n".encode())

    def save_tensor(self, value: _Tensor) -> None:
        self.save_global_name(_Global("torch._utils", "_rebuild_tensor_v2"))
        self.save(value.parts)
        self.write(pickle.REDUCE)

    dispatch[_Global] = save_global_name
    dispatch[_Tensor] = save_tensor


def _write(path: Path, state: Mapping[str, Any], storages: list[_Storage], **changes: Any) -> Path:
    """Writes a weight file; `changes` replaces its magic number, protocol or byte order."""
    info = {"protocol_version": 1001, "little_endian": changes.get("little_endian", True)}
    with path.open("wb") as file:
        for head in (changes.get("magic", MAGIC), changes.get("protocol", 1001), info):
            pickle.dump(head, file, protocol=2)
        _Pickler(file, protocol=2).dump(state)
        pickle.dump([storage.key for storage in storages], file, protocol=2)
        for storage in storages:
            file.write(struct.pack("<q", len(storage.values)) + storage.values.tobytes())
    return path


def _floats(count: int) -> np.ndarray:
    return np.arange(count, dtype="<f4")


def test_strides_and_offsets_are_honoured(tmp_path: Path) -> None:
    """A tensor that is stored in another order of axes, behind an offset, comes out as torch would show it."""
    # What torch keeps after `storage[2:].view(4, 3).t()`, and what a convolution from TensorFlow looks like.
    flat, kernel = _Storage("0", _floats(14)), _Storage("1", _floats(2 * 3 * 3 * 5))
    state: dict[str, Any] = {
        "turned": _Tensor(flat, 2, (3, 4), (1, 3)),
        "plain": _Tensor(flat, 2, (4, 3), (3, 1)),
        "kernel": _Tensor(kernel, 0, (5, 3, 3, 2), (1, 5, 30, 15)),
        "scalar": _Tensor(flat, 13, (), ()),
    }
    tensors = torch_file.read(_write(tmp_path / "w.pth", state, [flat, kernel]))
    values = _floats(14)[2:].reshape(4, 3)
    np.testing.assert_array_equal(tensors["turned"], values.T)
    np.testing.assert_array_equal(tensors["plain"], values)
    # Written as [height, width, in, out], shown as [out, in, height, width].
    np.testing.assert_array_equal(tensors["kernel"], _floats(90).reshape(3, 2, 3, 5).transpose(3, 2, 0, 1))
    assert tensors["scalar"] == 13.0


def test_storage_types(tmp_path: Path) -> None:
    """Every storage type that the reader knows keeps its values and its dtype."""
    kinds = {
        "FloatStorage": "<f4",
        "DoubleStorage": "<f8",
        "HalfStorage": "<f2",
        "LongStorage": "<i8",
        "IntStorage": "<i4",
    }
    storages = [_Storage(kind, np.array([1, 2, 3], dtype), kind) for kind, dtype in kinds.items()]
    state = {storage.kind: _Tensor(storage, 0, (3,), (1,)) for storage in storages}
    tensors = torch_file.read(_write(tmp_path / "w.pth", state, storages))
    assert {name: tensor.dtype.str for name, tensor in tensors.items()} == kinds
    assert all(tensor.tolist() == [1, 2, 3] for tensor in tensors.values())


def test_a_pickle_that_runs_a_command_is_refused(tmp_path: Path) -> None:
    """A file that would call os.system is refused with the name it asked for, and the command does not run."""

    class Bomb:
        def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
            return os.system, (f"touch '{tmp_path}/ran'",)

    content = b"".join(pickle.dumps(part, protocol=2) for part in (MAGIC, 1001, {"little_endian": True}, {"w": Bomb()}))
    (tmp_path / "w.pth").write_bytes(content)
    with pytest.raises(EnvironmentProblem, match=rf"asks for {os.system.__module__}\.system"):
        torch_file.read(tmp_path / "w.pth")
    assert not (tmp_path / "ran").exists()
    # The same file does run the command where nothing holds it back, so that this test can fail.
    with (tmp_path / "w.pth").open("rb") as file:
        for _ in range(4):
            pickle.load(file)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("builtins", "eval"),
        ("torch", "load"),
        ("torch.FloatStorage", "__init__"),
        ("collections", "OrderedDict.__reduce__"),
        ("torch._utils", "_rebuild_parameter"),
    ],
)
def test_other_names_are_refused(tmp_path: Path, module: str, name: str) -> None:
    """Only the names that a weight file needs are resolved, not their neighbours and not their attributes."""
    content = b"".join(pickle.dumps(part, protocol=2) for part in (MAGIC, 1001, {"little_endian": True}))
    (tmp_path / "w.pth").write_bytes(content + b"\x80\x02c" + f"{module}\n{name}\n.".encode())
    with pytest.raises(EnvironmentProblem, match="which weights have no use for"):
        torch_file.read(tmp_path / "w.pth")


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [(0, (3, 4), (4, 2)), (9, (4,), (1,)), (-1, (2,), (1,)), (4, (2,), (-3,)), (0, (2,), (10**9,))],
    ids=["strides", "offset", "negative offset", "negative stride", "far away"],
)
def test_a_tensor_stays_in_its_storage(
    tmp_path: Path, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    """A tensor that would read memory outside of its storage is refused."""
    storage = _Storage("0", _floats(12))
    path = _write(tmp_path / "w.pth", {"w": _Tensor(storage, offset, shape, strides)}, [storage])
    with pytest.raises(EnvironmentProblem, match="beyond its storage"):
        torch_file.read(path)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"magic": 7}, "begins with '7'"),
        ({"protocol": 1002}, "protocol is '1002'"),
        ({"little_endian": False}, "big-endian"),
        ({"count": 11}, "holds 12 values, not the 11"),
        ({"kind": "BoolStorage"}, "asks for torch.BoolStorage"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_other_formats_are_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    """A file that differs from the format in one place is refused with what differs and how to mend it."""
    storage = _Storage("0", _floats(12), changes.pop("kind", "FloatStorage"), changes.pop("count", None))
    path = _write(tmp_path / "w.pth", {"w": _Tensor(storage, 0, (2,), (1,))}, [storage], **changes)
    with pytest.raises(EnvironmentProblem, match=reason) as caught:
        torch_file.read(path)
    assert caught.value.place == str(path)
    assert "pip install" in caught.value.hint


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04rest", b"<html>", b"\x80\x02}."], ids=["empty", "zip", "page", "dict"]
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    """Bytes that are no weight file are an error of this machine, whatever the unpickler makes of them."""
    (tmp_path / "w.pth").write_bytes(content)
    with pytest.raises(EnvironmentProblem, match="no usable weight file"):
        torch_file.read(tmp_path / "w.pth")


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    """A file that was cut anywhere is refused: no tensor is filled with what is not there."""
    storage = _Storage("0", _floats(12))
    whole = _write(tmp_path / "w.pth", {"w": _Tensor(storage, 0, (12,), (1,))}, [storage]).read_bytes()
    for length in range(len(whole)):
        (tmp_path / "cut.pth").write_bytes(whole[:length])
        with pytest.raises(EnvironmentProblem):
            torch_file.read(tmp_path / "cut.pth")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A path without a file is an error that names it."""
    with pytest.raises(EnvironmentProblem, match=r"gone\.pth.*No such file"):
        torch_file.read(tmp_path / "gone.pth")
