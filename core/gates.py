"""Gate results: what was measured, against which bound, and what follows from it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from typing import Any


class Status(str, enum.Enum):
    """The outcome of one gate. Only PASSED is a pass."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    NO_DATA = "no data"
    NOT_EVALUATED = "not evaluated"


class Severity(str, enum.Enum):
    """What a gate that did not pass does to the run."""

    BLOCK = "block"
    WARN = "warn"


@dataclasses.dataclass(frozen=True)
class GateResult:
    """One gate's record: the artifact, the page and the log line are all made from it.

    Attributes:
        name: Stable identifier, `area.check[:subject]`, such as `data.drift:trip_miles`.
        status: The outcome.
        observed: The measured value; None when nothing was measured.
        bound: The limit it was held against, in the same unit; None when there is none.
        unit: Unit of `observed` and `bound`; empty for plain ratios.
        reason: One sentence for a person.
        severity: Whether a failure blocks the run or only warns.
        details: JSON-serializable extras (slice, baseline, rows, histograms).
    """

    name: str
    status: Status
    observed: float | str | None = None
    bound: float | str | None = None
    unit: str = ""
    reason: str = ""
    severity: Severity = Severity.BLOCK
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def blocks(self) -> bool:
        """True when this result stops the run: a blocking gate that failed or could not be judged."""
        refused = self.status in (Status.FAILED, Status.NO_DATA, Status.NOT_EVALUATED)
        return refused and self.severity is Severity.BLOCK

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form; the inverse of `from_dict`."""
        record = dataclasses.asdict(self)
        record["status"] = self.status.value
        record["severity"] = self.severity.value
        record["details"] = dict(self.details)
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> GateResult:
        """Returns the result that `to_dict` wrote.

        Raises:
            ValueError: A status or severity is not one of ours.
            TypeError: A key is missing or unknown.
        """
        fields = dict(record)
        fields["status"] = Status(fields["status"])
        fields["severity"] = Severity(fields.get("severity", Severity.BLOCK.value))
        return cls(**fields)


def blocking(results: Iterable[GateResult]) -> list[GateResult]:
    """Returns the results that stop the run, in their order."""
    return [result for result in results if result.blocks]


def refusal_line(results: Iterable[GateResult]) -> str:
    """Returns why a run stops, on one line: the first blocking result's reason and how many more there are.

    Empty when nothing blocks.
    """
    stopping = blocking(results)
    if not stopping:
        return ""
    more = len(stopping) - 1
    return stopping[0].reason + (f"; and {more} more refused {'check' if more == 1 else 'checks'}" if more else "")
