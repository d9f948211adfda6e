"""Steps are computed from counted records, never zero and never endless."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import ConfigError, DataError
from pipeline.training.steps import StepPlan, plan_steps

pytestmark = pytest.mark.unit

ASKED: dict[str, Any] = {
    "train_examples": 1000,
    "eval_examples": 100,
    "batch_size": 64,
    "epochs": 3,
    "train_steps": None,
    "eval_steps": None,
}


def test_omitted_counts_are_computed() -> None:
    """Three passes over 1,000 examples in batches of 64 are 47 steps; 100 eval examples are two batches."""
    assert plan_steps(**ASKED) == StepPlan(batch_size=64, train_steps=47, steps_per_epoch=16, eval_steps=2)


@pytest.mark.parametrize(
    ("changed", "train_steps", "eval_steps"),
    [
        pytest.param({"train_steps": 5}, 5, 2, id="steps given"),
        pytest.param({"eval_examples": 3}, 47, 1, id="fewer eval rows than a batch"),
        pytest.param({"eval_steps": 1}, 47, 1, id="fewer eval steps than batches"),
        pytest.param({"eval_steps": 900}, 47, 2, id="more eval steps than batches"),
        pytest.param({"train_examples": 1, "epochs": 1}, 1, 2, id="one train row"),
    ],
)
def test_given_numbers_are_kept_within_what_the_data_holds(
    changed: dict[str, Any], train_steps: int, eval_steps: int
) -> None:
    """Explicit steps win, but evaluation never waits for batches that do not exist."""
    plan = plan_steps(**{**ASKED, **changed})
    assert (plan.train_steps, plan.eval_steps) == (train_steps, eval_steps)


@pytest.mark.parametrize("key", ["batch_size", "epochs", "train_steps", "eval_steps"])
def test_zero_is_refused_by_name(key: str) -> None:
    """A zero, which elsewhere means "for ever" or "nothing", is an error that names the setting."""
    with pytest.raises(ConfigError) as caught:
        plan_steps(**{**ASKED, key: 0})
    assert caught.value.place == f"training.{key.removeprefix('train_')}"


@pytest.mark.parametrize("split", ["train", "eval"])
def test_an_empty_split_is_refused_by_name(split: str) -> None:
    """A split without examples stops the training before it starts."""
    with pytest.raises(DataError, match=f"the {split} split has no example"):
        plan_steps(**{**ASKED, f"{split}_examples": 0})


@pytest.mark.parametrize(
    ("train_steps", "epochs"),
    [
        pytest.param(32, [16, 16], id="whole passes"),
        pytest.param(40, [16, 16, 8], id="a short last pass"),
        pytest.param(3, [3], id="less than one pass"),
    ],
)
def test_epochs_add_up_to_the_steps(train_steps: int, epochs: list[int]) -> None:
    """Every step belongs to exactly one epoch."""
    assert plan_steps(**{**ASKED, "train_steps": train_steps}).epochs() == epochs
