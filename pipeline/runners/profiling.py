"""Measures the training of a recorded run again, on what its Transform wrote, without training a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import UsageError
from pipeline.runners import records
from pipeline.runners.layout import PipelineRoot

if TYPE_CHECKING:
    from core.settings import Settings
    from pipeline.training.profile import Profile


def profile(root: PipelineRoot, record: records.RunRecord, steps: int, changes: Sequence[str] = ()) -> Profile:
    """Returns what a run's training costs a step, and what its input pipeline adds.

    Args:
        root: The pipeline.
        record: The run; its Transform must have passed.
        steps: Steps to measure in each phase.
        changes: `a.b=c` flags that change the run's settings of the training.

    Raises:
        UsageError: The run has no transformed examples, or they are gone; or a change is to something else.
        ConfigError: The changed settings cannot work.
    """
    from core.settings.load import load_values
    from pipeline.stages import train

    file = root.run(record.run_id) / "settings.json"
    settings = load_values(json.loads(file.read_text(encoding="utf-8")), str(file), changes).settings
    _refuse_other_changes(settings, changes)
    examples, transform = (_output(record, key) for key in ("transformed_examples", "transform_graph"))
    # Only now: TensorFlow takes seconds to load.
    from pipeline.training.profile import profile_run

    wanted = json.dumps(train.stage(settings).settings(settings), sort_keys=True)
    return profile_run([str(examples / "Split-train" / "*")], str(transform), wanted, steps)


def _refuse_other_changes(settings: Settings, changes: Sequence[str]) -> None:
    """Refuses a change that would be without effect, or would not fit what Transform has written."""
    from pipeline.stages import train, transform

    only_trained = sorted({*train.stage(settings).settings(settings)} - {*transform.stage(settings).settings(settings)})
    for change in changes:
        key = change.partition("=")[0].strip()
        if key.partition(".")[0] not in only_trained:
            hint = f"These count here: {', '.join(only_trained)}, and run.root. For others, run the pipeline with them."
            raise UsageError(f"{key} does not change what is profiled", place=f"--set {change}", hint=hint)


def _output(record: records.RunRecord, key: str) -> Path:
    paths = record.node("Transform").outputs.get(key, [])
    if not paths or not Path(paths[0]).is_dir():
        what = "are gone" if paths else "were never made"
        hint = "Run the pipeline once: forebay run -c CONFIG, or --to Transform for its part up to there."
        raise UsageError(f"the transformed examples of run {record.run_id} {what}", hint=hint)
    return Path(paths[0])
