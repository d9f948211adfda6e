"""What is known of each file once it was decoded: all that the driver keeps in memory."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator
from typing import Union


@dataclasses.dataclass(frozen=True)
class Fact:
    """The outcome of one file.

    Attributes:
        name: Path relative to `data.path`.
        label: Its class.
        group: Product id; the name when there is none.
        sha256: Hex digest of the file's bytes; empty when it could not be read.
        line: Its line in the manifest; 0 without one.
        reason: Why it is set aside; empty for a photo that was written.
        raw: First bytes of a file that is set aside, for a person.
        phash: Perceptual hash; None for a photo that is too plain to have one, and for a rejected file.
        format: Sniffed kind of a photo; empty for a rejected file.
        converted: Conversions of a photo.
        own_group: False when the product id is only the name, because nothing gives another.
    """

    name: str
    label: str
    group: str
    sha256: str
    line: int = 0
    reason: str = ""
    raw: str = ""
    phash: Union[int, None] = None
    format: str = ""
    converted: tuple[str, ...] = ()
    own_group: bool = True


def write(path: str, facts: Iterable[Fact]) -> None:
    """Writes facts as JSON lines, whole or not at all.

    Nothing is forced to the disk: a run that loses power begins again.
    """
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(dataclasses.asdict(fact), ensure_ascii=False) + "\n" for fact in facts)
    os.replace(temporary, path)


def read(path: str | os.PathLike[str]) -> Iterator[Fact]:
    """Yields the facts of a file in their order."""
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            record = json.loads(line)
            yield Fact(**{**record, "converted": tuple(record["converted"])})
