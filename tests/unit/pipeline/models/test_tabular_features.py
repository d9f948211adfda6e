"""What the settings make of raw columns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.errors import ConfigError
from core.settings.tabular import Categorical, Cross, FeatureSettings
from pipeline.models.tabular import features as names

pytestmark = pytest.mark.unit

SECTIONS: dict[str, Any] = {
    "features": {
        "numeric": ["fare"],
        "bucketized": {"latitude": 4},
        "categorical": {"company": {"top_k": 10, "oov_buckets": 3}, "hour": {"integers": 24}},
        "crossed": [{"columns": ["latitude", "hour"], "hash_buckets": 50}],
    },
    "label": {"name": "big", "column": "tips", "above_share_of": "fare", "share": 0.2},
    "network": {"hidden_units": [8], "dropout": 0.0, "embedding_dimensions": 2},
    "training": {
        "strategy": "one_device",
        "batch_size": 8,
        "epochs": 2,
        "steps": None,
        "eval_steps": None,
        "learning_rate": 0.01,
        "seed": 1,
        "tensorboard": False,
    },
}


def test_settings_survive_the_way_through_a_nodes_configuration() -> None:
    """What was dumped for a node is read back as the same typed sections."""
    settings = names.read_settings({"settings": json.dumps(SECTIONS)})
    assert settings.features.crossed == [Cross(columns=["latitude", "hour"], hash_buckets=50)]
    assert (settings.label.share, settings.network.hidden_units, settings.training.steps) == (0.2, [8], None)


def test_transform_needs_only_the_sections_that_decide_its_result() -> None:
    """Transform's configuration holds no training section, and reading it asks for none."""
    features, label = names.read_columns(
        {"settings": json.dumps({key: SECTIONS[key] for key in ("features", "label")})}
    )
    assert (features.numeric, label.name) == (["fare"], "big")


@pytest.mark.parametrize(
    ("custom_config", "told"),
    [
        pytest.param(None, "got no settings", id="no configuration"),
        pytest.param({"settings": {"features": {}}}, "got no settings", id="not a text"),
        pytest.param({"settings": json.dumps({"features": SECTIONS["features"]})}, "label", id="a section is missing"),
    ],
)
def test_a_node_without_its_settings_is_refused(custom_config: dict[str, Any] | None, told: str) -> None:
    """A node that was not given its sections says so instead of failing somewhere inside a graph."""
    with pytest.raises(ConfigError, match=told) as caught:
        names.read_settings(custom_config)
    assert caught.value.place == "custom_config.settings"


def test_every_use_of_a_column_has_room_for_missing_unknown_and_known_values() -> None:
    """Sizes count one slot for "no value", then the unknown ones, then the known ones; a cross has its buckets only."""
    features = FeatureSettings.model_validate(SECTIONS["features"])
    inputs = names.model_inputs(features, {"company": 7})
    assert inputs.numeric == ("fare_scaled",)
    assert inputs.slots == {"latitude_bucket": 1 + 4, "company_slot": 1 + 3 + 7, "hour_slot": 1 + 1 + 24}
    assert inputs.crosses == {"latitude_x_hour_cross": 50}
    assert inputs.names() == ["fare_scaled", "latitude_bucket", "company_slot", "hour_slot", "latitude_x_hour_cross"]


def test_a_vocabulary_file_longer_than_top_k_is_used_up_to_top_k() -> None:
    """Transform keeps more values than the network uses, so that the counts of those it uses are exact."""
    features = FeatureSettings(numeric=[], bucketized={}, categorical={"company": Categorical(top_k=5)}, crossed=[])
    assert names.model_inputs(features, {"company": 4000}).slots == {"company_slot": 1 + 1 + 5}


def test_one_column_may_be_used_in_two_ways() -> None:
    """A column that is both scaled and bucketized becomes two features with different names."""
    features = FeatureSettings(numeric=["fare"], bucketized={"fare": 3}, categorical={}, crossed=[])
    assert names.model_inputs(features, {}).names() == ["fare_scaled", "fare_bucket"]


@pytest.mark.parametrize(
    ("feature", "name"),
    [
        pytest.param("trip_miles", "trip_miles", id="as it is"),
        pytest.param("hour of day", "hour_of_day", id="spaces"),
        pytest.param("price, EUR", "price__EUR", id="punctuation"),
        pytest.param("2nd", "column_2nd", id="a digit first"),
        pytest.param("größe", "gr__e", id="other alphabets"),
    ],
)
def test_signature_inputs_have_names_that_tensorflow_allows(feature: str, name: str) -> None:
    """Characters that TensorFlow refuses become underscores, by a rule that clients can repeat."""
    assert names.input_name(feature) == name


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"features": {"numeric": ["a b", "a_b"]}}, id="two columns"),
        pytest.param({"label": {"name": "fare_scaled"}}, id="the label and a feature"),
    ],
)
def test_features_that_would_share_a_name_are_refused(changed: dict[str, Any]) -> None:
    """Two features never silently overwrite each other."""
    sections = {key: {**SECTIONS[key], **changed.get(key, {})} for key in ("features", "label")}
    with pytest.raises(ConfigError, match="would both be called"):
        names.read_columns({"settings": json.dumps(sections)})
