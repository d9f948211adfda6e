"""What one measured run left behind."""

from __future__ import annotations

import dataclasses
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Measured:
    """One whole process.

    Attributes:
        seconds: Wall time from the start of the process to its end.
        nodes: Node to wall seconds, as the run's own records have them.
        lines: Lines that it printed.
        model: The pushed SavedModel.
        examples: Folder with Split-train and Split-eval.
    """

    seconds: float
    nodes: dict[str, float]
    lines: int
    model: Path
    examples: Path
