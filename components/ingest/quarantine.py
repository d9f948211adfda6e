"""The file of rows that were set aside, one JSON object a line, and their count."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from types import TracebackType

from components.ingest.rows import Reject

FILE_NAME = "quarantine.jsonl"


class Quarantine:
    """Writes rejects as they come and counts them; the file is complete once the context ends.

    Args:
        directory: Where quarantine.jsonl goes; created when missing.
    """

    def __init__(self, directory: str) -> None:
        os.makedirs(directory, exist_ok=True)
        self.path = os.path.join(directory, FILE_NAME)
        self.by_file: Counter[str] = Counter()
        self.first: Reject | None = None
        self._temporary = f"{self.path}.tmp"
        self._stream = open(self._temporary, "w", encoding="utf-8")  # noqa: SIM115 - closed in __exit__

    @property
    def count(self) -> int:
        """Number of rows set aside."""
        return sum(self.by_file.values())

    def add(self, rejects: Iterable[Reject]) -> None:
        """Writes rejects and counts them."""
        for reject in rejects:
            record = {"file": reject.file, "line": reject.line or None, "reason": reject.reason, "raw": reject.raw}
            self._stream.write(json.dumps(record, ensure_ascii=False) + "\n")
            self.by_file[reject.file] += 1
            if self.first is None:
                self.first = reject

    def __enter__(self) -> Quarantine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        os.replace(self._temporary, self.path)
