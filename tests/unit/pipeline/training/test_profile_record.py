"""A profile as people and programs read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import ConfigError
from pipeline.training.profile import PhaseProfile, Profile, profile_run

pytestmark = pytest.mark.unit

PROFILE = Profile(
    (
        PhaseProfile("features", 32, 100, step_ms=0.5, bound_ms=0.4, input_examples_per_s=123456.0),
        PhaseProfile("fine_tune", 32, 20, step_ms=99.0, bound_ms=100.0, input_examples_per_s=2000.0),
    )
)


def test_the_share_of_the_input_is_what_the_bound_leaves() -> None:
    """A step of 0.5 ms over a bound of 0.4 ms spends a fifth on its input; a step below its bound spends nothing."""
    document = json.loads(json.dumps(PROFILE.to_dict()))
    assert document["format_version"] == 1
    assert [phase["ratio"] for phase in document["phases"]] == pytest.approx([1.25, 0.99])
    assert [phase["input_share"] for phase in document["phases"]] == pytest.approx([0.2, 0.0])


def test_the_table_has_one_aligned_line_a_phase() -> None:
    """The table reads as printed here."""
    assert PROFILE.table().splitlines() == [
        "phase      batch  step ms  bound ms  step/bound  input share  input examples/s",
        "features      32    0.500     0.400       1.250       20.0 %           123,456",
        "fine_tune     32   99.000   100.000       0.990        0.0 %             2,000",
    ]


def test_a_recipe_that_cannot_be_profiled_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer without `profile_training` is refused by its name."""
    (tmp_path / "unprofiled_recipe").mkdir()
    (tmp_path / "unprofiled_recipe" / "trainer.py").write_text("def run_fn(fn_args): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=r"unprofiled_recipe\.trainer has no function profile_training"):
        profile_run([], "", json.dumps({"user_code": "unprofiled_recipe"}), 1)
