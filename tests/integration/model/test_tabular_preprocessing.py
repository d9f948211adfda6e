"""Raw columns become features by rules that numpy can repeat."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from core.errors import ConfigError

pytestmark = pytest.mark.integration


def column(table: Any, split: str, name: str, missing: Any) -> np.ndarray:
    """Returns a raw column, with `missing` where a row has no value."""
    return np.array([row.get(name, missing) for row in table.rows[split]])


@pytest.mark.parametrize("name", ["fare", "miles", "started"])
@pytest.mark.parametrize("split", ["train", "eval"])
def test_numbers_are_scaled_by_the_train_splits_present_values(table: Any, split: str, name: str) -> None:
    """Mean and deviation are those of the train split's values, absences become 0, large integers stay apart."""
    known = column(table, "train", name, np.nan).astype(np.float64)
    expected = (column(table, split, name, np.nan).astype(np.float64) - np.nanmean(known)) / np.nanstd(known)
    np.testing.assert_allclose(table.transformed[split][f"{name}_scaled"], np.nan_to_num(expected), atol=1e-4)


def test_buckets_hold_equal_shares_and_absence_has_its_own(table: Any) -> None:
    """Slot 0 is "no value"; the others each hold about a fourth of the values, in the order of the values."""
    raw = column(table, "train", "latitude", np.nan)
    slot = table.transformed["train"]["latitude_bucket"]
    np.testing.assert_array_equal(slot == 0, np.isnan(raw))
    present = ~np.isnan(raw)
    shares = np.bincount(slot[present], minlength=5)[1:] / present.sum()
    np.testing.assert_allclose(shares, 0.25, atol=0.02)
    assert np.all(np.diff(slot[present][np.argsort(raw[present])]) >= 0)


def test_a_vocabulary_holds_the_most_frequent_values_up_to_top_k(table: Any) -> None:
    """With top_k 2 and 3 unknown buckets: 0 no value, 1 to 3 hashed, 4 and 5 the two most frequent, in order."""
    raw = column(table, "train", "company", "")
    slot = table.transformed["train"]["company_slot"]
    assert set(slot[raw == "Alpha"]) == {4}
    assert set(slot[raw == "Beta"]) == {5}
    assert set(slot[raw == ""]) == {0}
    assert {1, 2, 3}.issuperset(slot[(raw == "Gamma") | (raw == "Delta")])


def test_integers_may_have_a_learned_vocabulary(table: Any) -> None:
    """Each of five large codes gets a slot of its own, an absent code gets slot 0."""
    raw = column(table, "train", "tract", -1)
    slot = table.transformed["train"]["tract_slot"]
    pairs = set(zip(raw.tolist(), slot.tolist(), strict=True))
    assert len(pairs) == 6
    assert {slot for code, slot in pairs if code != -1} == {2, 3, 4, 5, 6}
    assert (-1, 0) in pairs


def test_a_range_of_integers_keeps_its_values_and_sets_others_aside(table: Any) -> None:
    """0 to 9 follow the two unknown buckets; 10 and 11, which are out of range, share those; absence is slot 0."""
    raw = column(table, "train", "area", -1)
    expected = np.where(raw < 0, 0, np.where(raw < 10, 3 + raw, 1 + raw % 2))
    np.testing.assert_array_equal(table.transformed["train"]["area_slot"], expected)


def test_a_cross_depends_on_its_columns_alone_and_stays_in_its_buckets(table: Any) -> None:
    """Equal pairs of slots have equal crosses, and different pairs spread over the buckets."""
    features = table.transformed["train"]
    pairs: dict[tuple[int, int], set[int]] = {}
    for a, b, cross in zip(
        features["latitude_bucket"], features["area_slot"], features["latitude_x_area_cross"], strict=True
    ):
        pairs.setdefault((a, b), set()).add(cross)
    assert all(len(crosses) == 1 for crosses in pairs.values())
    used = set().union(*pairs.values())
    assert used <= set(range(20))
    assert len(used) > 10


def test_the_label_is_one_where_the_share_is_exceeded(table: Any) -> None:
    """Label = tips above 0.2 of the fare, for both splits."""
    for split in ("train", "eval"):
        tips, fare = column(table, split, "tips", 0).astype("f4"), column(table, split, "fare", 0).astype("f4")
        np.testing.assert_array_equal(table.transformed[split]["big"], tips > np.float32(0.2) * fare)


@pytest.mark.parametrize(
    ("tips", "fare", "expected"),
    [
        pytest.param(3.0, 10.0, 1, id="above"),
        pytest.param(2.0, 10.0, 0, id="exactly the share"),
        pytest.param(3.0, float("nan"), 0, id="nothing to compare with"),
        pytest.param(1.0, 0.0, 1, id="a fare of zero"),
        pytest.param(float("nan"), 10.0, -1, id="no tip recorded"),
    ],
)
def test_a_label_without_its_parts(tips: float, fare: float, expected: int) -> None:
    """A missing reference makes the label 0, a missing column leaves the row without a label."""
    assert _label({"column": "tips", "above_share_of": "fare", "share": 0.2}, tips=tips, fare=fare) == expected


@pytest.mark.parametrize(("value", "expected"), [(0.0, 0), (1.0, 1), (0.5, -1), (float("nan"), -1)])
def test_a_plain_label_is_zero_or_one_or_unusable(value: float, expected: int) -> None:
    """Without a rule only 0 and 1 are labels; nothing else is rounded to one of them."""
    assert _label({"column": "tips"}, tips=value) == expected


def _label(rule: dict[str, Any], **row: float) -> int:
    """Returns the label of one row. The only feature needs no analysis, so no Beam run either."""
    import tensorflow as tf

    from pipeline.models.tabular.preprocessing import preprocessing_fn

    sections = {
        "features": {"numeric": [], "bucketized": {}, "categorical": {"hour": {"integers": 24}}, "crossed": []},
        "label": {"name": "big", "above_share_of": None, "share": None, **rule},
    }
    columns = {name: tf.constant([[value]]) for name, value in row.items()} | {"hour": tf.constant([3], tf.int64)}
    return int(preprocessing_fn(columns, {"settings": json.dumps(sections)})["big"])


@pytest.mark.parametrize(
    ("use", "told"),
    [
        pytest.param({"numeric": ["name"]}, "'name' is used as a number, but the schema says BYTES", id="text scaled"),
        pytest.param({"bucketized": {"name": 3}}, "used as a number", id="text bucketized"),
        pytest.param({"categorical": {"name": {"integers": 5}}}, "used as an integer", id="text as integers"),
        pytest.param({"categorical": {"fare": {"integers": 5}}}, "the schema says FLOAT", id="fractions as integers"),
        pytest.param({"categorical": {"fare": {"top_k": 5}}}, "the schema says FLOAT", id="fractions as names"),
        pytest.param({"numeric": ["far"]}, "'far' is not in the schema.*did you mean 'fare'", id="a typing error"),
        pytest.param({"numeric": ["pair"]}, "'pair' has several values a row", id="several values"),
    ],
)
def test_a_column_that_does_not_fit_its_use_is_named(use: dict[str, Any], told: str) -> None:
    """A column that is absent, or of another type than its use needs, is an error that names it and the fix."""
    import tensorflow as tf

    from pipeline.models.tabular.preprocessing import preprocessing_fn

    sections = {
        "features": {"numeric": [], "bucketized": {}, "categorical": {}, "crossed": [], **use},
        "label": {"name": "big", "column": "fare", "above_share_of": None, "share": None},
    }
    columns = {"name": tf.constant(["a"]), "fare": tf.constant([1.5]), "pair": tf.constant([[1.0, 2.0]])}
    with pytest.raises(ConfigError) as caught:
        preprocessing_fn(columns, {"settings": json.dumps(sections)})
    assert re.search(told, str(caught.value))
