"""Measures the training of a recorded run again, on what its Transform wrote, without training a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import UsageError
from pipeline.runners import records
from pipeline.runners.layout import PipelineRoot

if TYPE_CHECKING:
    from pipeline.training.profile import Profile


def profile(root: PipelineRoot, record: records.RunRecord, steps: int) -> Profile:
    """Returns what a run's training costs a step, and what its input pipeline adds.

    Args:
        root: The pipeline.
        record: The run; its Transform must have passed.
        steps: Steps to measure in each phase.

    Raises:
        UsageError: The run has no transformed examples, or they are gone.
    """
    from core.settings.load import load_values
    from pipeline.stages import train

    file = root.run(record.run_id) / "settings.json"
    settings = load_values(json.loads(file.read_text(encoding="utf-8")), str(file)).settings
    examples, transform = (_output(record, key) for key in ("transformed_examples", "transform_graph"))
    # Only now: TensorFlow takes seconds to load.
    from pipeline.training.profile import profile_run

    wanted = json.dumps(train.stage(settings).settings(settings), sort_keys=True)
    return profile_run([str(examples / "Split-train" / "*")], str(transform), wanted, steps)


def _output(record: records.RunRecord, key: str) -> Path:
    paths = record.node("Transform").outputs.get(key, [])
    if not paths or not Path(paths[0]).is_dir():
        what = "are gone" if paths else "were never made"
        hint = "Run the pipeline once: forebay run -c CONFIG, or --to Transform for its part up to there."
        raise UsageError(f"the transformed examples of run {record.run_id} {what}", hint=hint)
    return Path(paths[0])
