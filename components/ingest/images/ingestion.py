"""Ingestion of photos from end to end: list, decode, group, split, write, account for every file."""

from __future__ import annotations

import dataclasses
import itertools
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from components.ingest import sources, tfrecord
from components.ingest.images import chunks, groups, leakage, listing, names, outcome, report, stratify
from components.ingest.images.chunks import Chunk, Decoding
from components.ingest.images.decode import Rules
from components.ingest.images.facts import Fact
from components.ingest.images.listing import Listing
from components.ingest.images.report import Accounts, PhotoReport
from components.ingest.quarantine import Quarantine
from components.ingest.report import FILE_NAME
from components.ingest.rows import Reject
from components.ingest.sources import Source
from components.ingest.splitting import split_names
from components.ingest.writing import SplitWriters
from core.errors import DataError
from core.files import write_json_atomic
from core.settings.data import DataSettings

# JPEGs are compressed already: gzip would find nothing and take as long as decoding a fifth of them.
_GZIP_LEVEL = 0
_BLOCK_RECORDS = 64

# Decodes every chunk, in any order and on any machine that sees the work folder.
Decoder = Callable[[Sequence[Chunk], Decoding], None]


def decode_here(pieces: Sequence[Chunk], decoding: Decoding) -> None:
    """Decodes the chunks one after the other in this process, on all of its cores."""
    for piece in pieces:
        chunks.decode_chunk(piece, decoding)


@dataclasses.dataclass(frozen=True)
class _Sorted:
    """What became of the files.

    Attributes:
        decoded: Every photo that was decoded, in the order of decoding.
        written: Whether each of them goes into a split.
        copies: Exact copies that are left out; the rest that is not written is among `rejects`.
        rejects: What is set aside, by name.
    """

    decoded: list[Fact]
    written: list[bool]
    copies: list[Fact]
    rejects: list[Reject]

    @property
    def photos(self) -> list[Fact]:
        """The photos that go into a split, in the order of decoding."""
        return list(itertools.compress(self.decoded, self.written))


def ingest_photos(
    data: DataSettings,
    source: Source,
    *,
    source_digest: str,
    split_uris: Mapping[str, str],
    report_dir: str,
    work_dir: str,
    decoder: Decoder = decode_here,
) -> PhotoReport:
    """Turns the photos of a source into splits of tf.Example and returns what became of every file.

    Photos are decoded into a work folder, which is gone afterwards; what stays in memory is a few hundred bytes for
    each. Equal files and settings give equal bytes, however many cores or workers decode.

    Args:
        data: How photos are stored and split.
        source: The photos, as `sources.resolve` found them.
        source_digest: Their `sources.content_digest` when the run began.
        split_uris: Folder for each split that `data.split.shares` names.
        report_dir: Folder for ingest_report.json and quarantine.jsonl.
        work_dir: Existing folder on a disk with room for the stored photos once more.
        decoder: What decodes the chunks.

    Raises:
        DataError: The photos cannot be used: too many bad ones, a class without photos that may not be, an empty
            split, or files that changed since the run began.
    """
    found = listing.read(source.root, manifest=data.images.manifest)
    pieces = chunks.split_up(found.entries, data.split.seed)
    with tempfile.TemporaryDirectory(prefix=".photos-", dir=work_dir) as workspace:
        decoder(pieces, Decoding(Rules.of(data.images), data.images.group_pattern, workspace, len(found.entries)))
        facts = list(chunks.results(pieces, workspace))
        _check_unchanged(source, facts, source_digest)
        files = _sort_out(facts, found.rejects)
        with Quarantine(report_dir) as quarantine:
            quarantine.add(files.rejects)
        records = chunks.records(pieces, workspace)
        directories = {name: split_uris[name] for name in split_names(data.split)}
        with SplitWriters(directories, data.shards, _GZIP_LEVEL) as writers:
            result = _split(data, source, found, files, records, writers)
            write_json_atomic(os.path.join(report_dir, FILE_NAME), result.to_dict())
            outcome.check(data, found, result, files.rejects, quarantine.path)
    return result


def _split(
    data: DataSettings,
    source: Source,
    found: Listing,
    files: _Sorted,
    records: Iterable[bytes],
    writers: SplitWriters,
) -> PhotoReport:
    """Writes every photo to its split and returns what became of every file."""
    photos, near_bits = files.photos, data.images.near_duplicate_bits
    grouping = groups.join(photos, files.copies, near_bits)
    codes, warnings = stratify.assign(photos, grouping.family[: len(photos)], data.split)
    ids_expected = data.images.group_pattern is not None or any(entry.group for entry in found.entries)
    warnings += groups.warnings_of(photos, grouping, ids_expected=ids_expected)
    written = _copy(records, files, codes.tolist(), writers)
    shared = leakage.count_shared(written, near_bits)
    accounts = Accounts(written, files.copies, files.rejects, groups.account(photos, grouping), shared)
    return report.make(data, source, found, accounts, warnings)


def _check_unchanged(source: Source, facts: Sequence[Fact], source_digest: str) -> None:
    """Refuses photos that are not those the run began with, by the bytes that were decoded."""
    hashes = {fact.name: fact.sha256 for fact in facts}
    if sources.digest_of(source, (hashes.get(source.name_of(path), "") for path in source.files)) != source_digest:
        raise DataError(
            "the input files changed after this run began",
            place=source.root,
            hint="run again once nothing writes to them",
        )


def _sort_out(facts: Sequence[Fact], unread: Sequence[Reject]) -> _Sorted:
    """Sorts out exact copies: of one class the first by name is kept, of several classes none is."""
    decoded = [fact for fact in facts if not fact.reason]
    rejects = [_reject(fact, fact.reason) for fact in facts if fact.reason]
    by_content: dict[str, list[Fact]] = defaultdict(list)
    for fact in decoded:
        by_content[fact.sha256].append(fact)
    copies: list[Fact] = []
    left_out: set[str] = set()
    for alike in by_content.values():
        alike.sort(key=lambda fact: fact.name)
        first = alike[0]
        other = next((fact for fact in alike if fact.label != first.label), None)
        if other is not None:
            reason = f"the same photo is in {first.label!r} ({first.name}) and in {other.label!r} ({other.name})"
            rejects += [_reject(fact, reason) for fact in alike]
            left_out.update(fact.name for fact in alike)
        else:
            copies += alike[1:]
            left_out.update(fact.name for fact in alike[1:])
    rejects = sorted([*unread, *rejects], key=lambda reject: (reject.file, reject.reason))
    copies.sort(key=lambda fact: fact.name)
    return _Sorted(decoded, [fact.name not in left_out for fact in decoded], copies, rejects)


def _reject(fact: Fact, reason: str) -> Reject:
    return Reject(fact.name, 0, names.with_line(reason, fact.line), fact.raw)


def _copy(
    records: Iterable[bytes], files: _Sorted, codes: Sequence[int], writers: SplitWriters
) -> list[tuple[int, Fact]]:
    """Writes each photo to its split, and returns (split, photo) of what was written."""
    import pyarrow

    splits = list(writers.splits.values())
    code_of = iter(codes)
    blocks: list[list[bytes]] = [[] for _ in splits]
    written = []

    def flush(code: int) -> None:
        examples = pyarrow.array(blocks[code], pyarrow.large_binary())
        splits[code].write(examples, tfrecord.checksums(examples))
        blocks[code] = []

    for fact, goes, record in zip(files.decoded, files.written, records, strict=True):
        if goes:
            code = next(code_of)
            blocks[code].append(record)
            written.append((code, fact))
            if len(blocks[code]) == _BLOCK_RECORDS:
                flush(code)
    for code, block in enumerate(blocks):
        if block:
            flush(code)
    return written
