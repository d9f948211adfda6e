"""What a training on a table costs before and beside its steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration


def test_a_profile_measures_the_steps_of_a_training(table: Any, tmp_path: Path) -> None:
    """One phase, of the configured batch size, with a step time, a bound and the speed of its input."""
    from pipeline.models.tabular.trainer import profile_training

    args = table.fn_args(tmp_path)
    (phase,) = profile_training(args.custom_config, args.train_files, args.transform_output, 15).phases
    # Whole blocks of ten.
    assert (phase.name, phase.batch_size, phase.steps) == ("train", 32, 20)
    assert min(phase.step_ms, phase.bound_ms, phase.input_examples_per_s) > 0.0


def test_a_training_counts_the_vocabularies_once(table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each vocabulary is a file that may be large: both splits share what was read of it."""
    from pipeline.models.tabular import trainer

    counted = []
    sizes = trainer.vocabulary_sizes

    def spied(*given: Any) -> dict[str, int]:
        counted.append(given)
        return sizes(*given)

    class Reached(Exception):
        """The training itself is not wanted."""

    def train(*_: Any) -> None:
        raise Reached

    monkeypatch.setattr(trainer, "vocabulary_sizes", spied)
    monkeypatch.setattr(trainer, "train_network", train)
    with pytest.raises(Reached):
        trainer.run_fn(table.fn_args(tmp_path))
    assert len(counted) == 1
