"""One line of the doctor's answer."""

from __future__ import annotations

import dataclasses
import enum


class Level(str, enum.Enum):
    """What a finding means for the next run."""

    OK = "ok"
    # True, and a matter of choice: an extra that is not installed, a machine without a GPU.
    NOTE = "note"
    # The run works, worse than it could.
    WARNING = "warning"
    # The run cannot work.
    BLOCKER = "blocker"


@dataclasses.dataclass(frozen=True)
class Finding:
    """What was looked at and what was seen.

    Attributes:
        area: The group it is shown under, such as `packages`.
        name: What was looked at, stable for programs.
        level: What it means.
        found: What is there, in words or a version.
        wanted: What should be there; empty when nothing particular is.
        fix: What to do; empty exactly when the level is OK.
    """

    area: str
    name: str
    level: Level
    found: str
    wanted: str = ""
    fix: str = ""

    def to_dict(self) -> dict[str, str]:
        """Returns the stable machine form."""
        return {**dataclasses.asdict(self), "level": self.level.value}
