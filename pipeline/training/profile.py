"""What a training costs a step, and what bounds it: the record. `measuring` makes it. No TensorFlow until it is run."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Sequence
from typing import Any

from core.errors import ConfigError

FORMAT_VERSION = 1


@dataclasses.dataclass(frozen=True)
class PhaseProfile:
    """What one phase of a training costs.

    Attributes:
        name: Of the phase.
        batch_size: Examples of a step.
        steps: Steps measured, each way.
        step_ms: Median time of a step with its real input pipeline, after the first pass over the examples.
        bound_ms: Median time of a step on batches that are in memory already: what no input pipeline can beat.
        input_examples_per_s: What the input pipeline delivers when nothing else runs.
    """

    name: str
    batch_size: int
    steps: int
    step_ms: float
    bound_ms: float
    input_examples_per_s: float

    @property
    def ratio(self) -> float:
        """Time of a step over its bound; 1 is an input pipeline that costs nothing."""
        return self.step_ms / self.bound_ms

    @property
    def input_share(self) -> float:
        """Share of a step, 0 to 1, that the input pipeline takes; noise below the bound counts as 0."""
        return max(0.0, 1.0 - self.bound_ms / self.step_ms)

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {**dataclasses.asdict(self), "ratio": self.ratio, "input_share": self.input_share}


@dataclasses.dataclass(frozen=True)
class Profile:
    """What each phase of a training costs.

    Attributes:
        phases: In the order in which they run.
    """

    phases: tuple[PhaseProfile, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {"format_version": FORMAT_VERSION, "phases": [phase.to_dict() for phase in self.phases]}

    def table(self) -> str:
        """Returns the profile as a table of plain text."""
        header = ("phase", "batch", "step ms", "bound ms", "step/bound", "input share", "input examples/s")
        rows = [
            (
                phase.name,
                f"{phase.batch_size}",
                f"{phase.step_ms:.3f}",
                f"{phase.bound_ms:.3f}",
                f"{phase.ratio:.3f}",
                f"{100 * phase.input_share:.1f} %",
                f"{phase.input_examples_per_s:,.0f}",
            )
            for phase in self.phases
        ]
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        # Names to the left, numbers to the right.
        aligned = [
            [cell.rjust(width) if column else cell.ljust(width) for column, (cell, width) in enumerate(cells)]
            for cells in (zip(row, widths, strict=True) for row in (header, *rows))
        ]
        return "\n".join("  ".join(row) for row in aligned)


def profile_run(train_files: Sequence[str], transform_dir: str, settings_json: str, steps: int) -> Profile:
    """Returns the profile of a training that a recipe's Trainer would run.

    Args:
        train_files: Files or globs of transformed train examples.
        transform_dir: Output of the Transform node.
        settings_json: The JSON object that the Trainer gets as its settings, with `user_code`.
        steps: Steps to measure in each phase.

    Raises:
        ConfigError: The recipe's trainer cannot be profiled.
    """
    name = f"{json.loads(settings_json)['user_code']}.trainer"
    profile_training = getattr(importlib.import_module(name), "profile_training", None)
    if profile_training is None:
        raise ConfigError(f"{name} has no function profile_training", place="user_code", hint="write one to profile it")
    profile: Profile = profile_training({"settings": settings_json}, train_files, transform_dir, steps)
    return profile
