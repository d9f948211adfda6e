"""Labels that are words."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("values", "positive"),
    [(["Yes", "No", "", "yes"], "Yes"), ([2, 1, -(2**53), 20], "2")],
    ids=["text", "whole number"],
)
def test_the_named_value_is_one_and_every_other_zero(values: list[object], positive: str) -> None:
    """Exactly the named value counts as 1, another value as 0, and a row without one stays without a label."""
    import tensorflow as tf

    from core.settings.tabular import LabelSettings
    from pipeline.models.tabular import preprocessing

    label = LabelSettings(name="churned", column="answer", positive=positive)
    inputs = {"answer": tf.constant(values, tf.string if isinstance(values[0], str) else tf.int64)}
    assert preprocessing._label(inputs, label).numpy().tolist() == [1, 0, preprocessing.UNLABELLED, 0]
