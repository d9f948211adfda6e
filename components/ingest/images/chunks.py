"""Decodes photos in chunks: each leaves a TFRecord file and its facts in a work folder.

A worker has one chunk at a time and decodes it on as many threads as its host lets it use: workers on different hosts
add up, several on one host only share its cores, each with memory for its own photos. One worker a host is enough.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import logging
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar, Union

from components.ingest import examples, tfrecord
from components.ingest.images import facts, sniff
from components.ingest.images.decode import Photo, Rejection, Rules, decode
from components.ingest.images.facts import Fact
from components.ingest.images.listing import Entry
from core.files import sha256_file
from core.label_map import parent_of

_LOG = logging.getLogger(__name__)

# Photos of a chunk: large enough that its last photo, decoded while other threads wait, does not count.
CHUNK_PHOTOS = 128
# Photos that are written together.
_BLOCK_PHOTOS = 16
_RAW_BYTES = 64
# Every core holds a file in memory while it decodes it. This much are 89 megapixels of 8-bit colour without any
# compression: what is larger is no photo of a product, and a few of them would end the run.
_MAX_FILE_BYTES = 256 << 20
_FACTS_ENDING = ".facts.jsonl"

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Some of the files.

    Attributes:
        index: Its place in the order of all chunks.
        entries: The files.
    """

    index: int
    entries: tuple[Entry, ...]


@dataclasses.dataclass(frozen=True)
class Decoding:
    """What every chunk is decoded by.

    Attributes:
        rules: How photos are read and stored.
        group_pattern: Regular expression on file names with one group, the product id; None: each photo its own.
        workspace: Folder for the results.
        photos: Number of files in all chunks, for the log.
    """

    rules: Rules
    group_pattern: Union[str, None]
    workspace: str
    photos: int


def split_up(entries: Sequence[Entry], seed: str) -> list[Chunk]:
    """Returns the files in chunks, in an order that is random but the same on every machine.

    Neighbours in the splits are then of all classes, and no chunk gets all of the large photos.
    """
    order = sorted(entries, key=lambda entry: hashlib.blake2b(f"{seed}\0{entry.name}".encode(), digest_size=8).digest())
    starts = range(0, len(order), CHUNK_PHOTOS)
    return [Chunk(index, tuple(order[at : at + CHUNK_PHOTOS])) for index, at in enumerate(starts)]


def decode_chunk(chunk: Chunk, decoding: Decoding) -> None:
    """Writes the photos of a chunk and what became of each file.

    Results depend on the chunk alone, so a repeated attempt leaves the same bytes. The facts are written last: their
    file says that the chunk is done.
    """
    target = _shard_path(decoding.workspace, chunk.index)
    pattern = re.compile(decoding.group_pattern) if decoding.group_pattern is not None else None
    outcomes: list[Fact] = []
    block: list[bytes] = []
    with open(target, "wb") as stream, ThreadPoolExecutor(_cores(), thread_name_prefix="photos") as pool:
        for fact, record in _in_order(pool, lambda entry: _read(entry, pattern, decoding.rules), chunk.entries):
            outcomes.append(fact)
            if record is not None:
                block.append(record)
            if len(block) == _BLOCK_PHOTOS:
                stream.write(_framed(block))
                block = []
        stream.write(_framed(block))
    facts.write(f"{target}{_FACTS_ENDING}", outcomes)
    finished = sum(name.endswith(_FACTS_ENDING) for name in os.listdir(decoding.workspace))
    _LOG.info("%d of %d photos decoded", min(finished * CHUNK_PHOTOS, decoding.photos), decoding.photos)


def results(chunks: Iterable[Chunk], workspace: str) -> Iterator[Fact]:
    """Yields the facts of finished chunks in the chunks' order."""
    for chunk in chunks:
        yield from facts.read(f"{_shard_path(workspace, chunk.index)}{_FACTS_ENDING}")


def records(chunks: Iterable[Chunk], workspace: str) -> Iterator[bytes]:
    """Yields the serialized tf.Example of each photo in the order of the facts without a reason; checksums are checked.

    The file of a chunk is removed once it was read, so that photos do not lie on the disk twice.
    """
    for chunk in chunks:
        path = _shard_path(workspace, chunk.index)
        if os.path.getsize(path):
            for _, data in tfrecord.read(path):
                yield data
        os.unlink(path)


def group_of(entry: Entry, pattern: re.Pattern[str] | None) -> str:
    """Returns a photo's product id: the manifest's, else what the pattern finds in the file name; empty for none."""
    if entry.group or pattern is None:
        return entry.group
    found = pattern.search(unicodedata.normalize("NFC", os.path.basename(entry.name)))
    return (found.group(1) or "") if found else ""


def _read(entry: Entry, pattern: re.Pattern[str] | None, rules: Rules) -> tuple[Fact, Union[bytes, None]]:
    """Returns what is known of a file, and its serialized tf.Example; None for one that is set aside."""
    group = group_of(entry, pattern)
    fact = Fact(entry.name, entry.label, group or entry.name, "", entry.line, own_group=bool(group))
    try:
        with open(entry.path, "rb") as stream:
            head, size = stream.read(sniff.HEAD_BYTES), os.fstat(stream.fileno()).st_size
            reason = _why_not_read(head, size)
            data = b"" if reason else head + stream.read()
        sha256 = sha256_file(entry.path) if reason else hashlib.sha256(data).hexdigest()
    except OSError as error:
        return dataclasses.replace(fact, reason=f"cannot be read: {error.strerror}"), None
    photo = Rejection(reason) if reason else decode(data, rules)
    if isinstance(photo, Rejection):
        raw = head[:_RAW_BYTES].decode("ascii", "backslashreplace")
        return dataclasses.replace(fact, sha256=sha256, reason=photo.reason, raw=raw), None
    fact = dataclasses.replace(fact, sha256=sha256, phash=photo.phash, format=photo.format, converted=photo.converted)
    return fact, _example(fact, photo)


def _why_not_read(head: bytes, size: int) -> str:
    """Returns why a file is not worth reading as a whole, by its first bytes and its size; empty when it is."""
    if sniff.photo_format(head) is None:
        return sniff.why_no_photo(head)
    return f"{size:,} bytes are more than a photo has ({_MAX_FILE_BYTES:,})" if size > _MAX_FILE_BYTES else ""


def _example(fact: Fact, photo: Photo) -> bytes:
    texts = {
        "label": fact.label,
        "parent": parent_of(fact.label),
        "path": fact.name,
        "group": fact.group,
        "sha256": fact.sha256,
        "format": fact.format,
    }
    return examples.encode_one(
        {
            "image": photo.jpeg,
            "width_px": photo.width_px,
            "height_px": photo.height_px,
            "brightness": photo.brightness,
            **{name: text.encode("utf-8") for name, text in texts.items()},
        }
    )


def _framed(block: Sequence[bytes]) -> bytes:
    import pyarrow

    records = pyarrow.array(block, pyarrow.large_binary())
    return tfrecord.frame(records, tfrecord.checksums(records))


def _in_order(pool: ThreadPoolExecutor, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yields what the function returns for each item, in order, with few results waiting."""
    waiting: collections.deque[Future[Result]] = collections.deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) > 2 * _cores():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _shard_path(workspace: str, index: int) -> str:
    return os.path.join(workspace, f"photos-{index:06d}.tfrecord")
