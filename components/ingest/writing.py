"""Writes the splits: gzip TFRecord shards under the names that TFX's readers look for."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from components.ingest import tfrecord

# Level 1: the records of a split are so alike that higher levels gain little (measured in docs/ingest.md).
_GZIP_LEVEL = 1
_GZIP_WINDOW = 31


class SplitWriter:
    """Writes one split; record i goes to shard i modulo the number of shards.

    Args:
        directory: The split's folder; created when missing.
        shards: Number of files.
        pool: Runs the compression, so that it overlaps with parsing; files stay in order.
        gzip_level: 0 (only framed) to 9.
    """

    def __init__(self, directory: str, shards: int, pool: ThreadPoolExecutor, gzip_level: int = _GZIP_LEVEL) -> None:
        os.makedirs(directory, exist_ok=True)
        self.count = 0
        self._shards = [
            _Shard(os.path.join(directory, f"data_tfrecord-{index:05d}-of-{shards:05d}.gz"), pool, gzip_level)
            for index in range(shards)
        ]

    def write(self, examples: Any, crcs: tfrecord.Checksums) -> None:
        """Appends serialized examples.

        Args:
            examples: pyarrow large_binary array.
            crcs: uint32[examples], their checksums.
        """
        number = len(self._shards)
        shard_of = (np.arange(len(examples)) + self.count) % number
        for index, shard in enumerate(self._shards):
            rows = np.flatnonzero(shard_of == index)
            if number == 1:
                shard.write(tfrecord.frame(examples, crcs))
            elif len(rows):
                shard.write(tfrecord.frame(examples.take(rows), crcs[rows]))
        self.count += len(examples)

    def close(self) -> None:
        """Completes the files and gives them their names.

        Raises:
            OSError: The disk is full or a file cannot be written.
        """
        for shard in self._shards:
            shard.close()

    def abandon(self) -> None:
        """Removes what was written."""
        for shard in self._shards:
            shard.abandon()


class SplitWriters:
    """The writers of all splits; complete on a clean exit, gone after an error.

    Args:
        directories: Folder by split name.
        shards: Number of files per split.
        gzip_level: 0 to 9. 0 only frames the records: for what is compressed already.
    """

    def __init__(self, directories: Mapping[str, str], shards: int, gzip_level: int = _GZIP_LEVEL) -> None:
        # One thread keeps the order of the blocks of each file.
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gzip")
        self.splits = {name: SplitWriter(path, shards, self._pool, gzip_level) for name, path in directories.items()}

    def __enter__(self) -> SplitWriters:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for writer in self.splits.values():
                writer.close() if kind is None else writer.abandon()
        finally:
            self._pool.shutdown(wait=True)


class _Shard:
    """One gzip file, compressed on another thread with at most one block waiting."""

    def __init__(self, path: str, pool: ThreadPoolExecutor, gzip_level: int) -> None:
        self._path = path
        self._temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.tmp")
        self._stream: BinaryIO = open(self._temporary, "wb")  # noqa: SIM115 - lives until close()
        # zlib's own header carries no time and no name: equal records give equal files.
        self._gzip = zlib.compressobj(gzip_level, zlib.DEFLATED, _GZIP_WINDOW)
        self._pool = pool
        self._pending: Future[None] | None = None

    def write(self, framed: bytes) -> None:
        self._wait()
        self._pending = self._pool.submit(self._append, framed)

    def close(self) -> None:
        self._wait()
        self._stream.write(self._gzip.flush())
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        os.replace(self._temporary, self._path)

    def abandon(self) -> None:
        if self._pending is not None:
            self._pending.exception()
        self._stream.close()
        os.unlink(self._temporary)

    def _append(self, framed: bytes) -> None:
        self._stream.write(self._gzip.compress(framed))

    def _wait(self) -> None:
        if self._pending is not None:
            self._pending.result()
            self._pending = None
