"""The gate as a whole: anomalies, counts, severity, the report and its line."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2

from components.data_gate import gate, report
from components.data_gate.dataset import Dataset
from core.errors import ConfigError
from core.gates import GateResult, Status, refusal_line

pytestmark = pytest.mark.unit

SCHEMA = text_format.Parse(
    """
    feature { name: "hour" type: INT presence { min_fraction: 1.0 } int_domain { min: 0 max: 23 } }
    feature { name: "fare" type: FLOAT presence { min_fraction: 1.0 } float_domain { min: 0 } }
    feature { name: "payment_type" type: BYTES domain: "payment_type" }
    string_domain { name: "payment_type" value: "Cash" value: "Card" }
    """,
    schema_pb2.Schema(),
)
NOTHING = anomalies_pb2.Anomalies()


def _anomaly(feature: str, kind: str, text: str = "TFDV says so.") -> anomalies_pb2.Anomalies:
    anomalies = anomalies_pb2.Anomalies()
    info = anomalies.anomaly_info[feature]
    info.path.step.append(feature)
    info.reason.add(type=anomalies_pb2.AnomalyInfo.Type.Value(kind), description=text)
    return anomalies


def _unknown(split: str, feature: str, low: float, high: float) -> int | None:
    return None


def _judge(
    settings: dict[str, Any], data: Dataset, anomalies: Any = NOTHING, count: Any = _unknown
) -> list[GateResult]:
    return gate.judge(gate.Evidence({data.split: data}, {data.split: anomalies}, SCHEMA, None, count), settings)


def _failed(results: list[GateResult]) -> GateResult:
    failed = [result for result in results if result.status is Status.FAILED]
    assert len(failed) == 1
    return failed[0]


@pytest.mark.parametrize(
    ("counted", "rows", "exact"),
    [pytest.param(3, 3, True, id="counted"), pytest.param(None, 100, False, id="estimated")],
)
def test_a_value_above_its_domain_is_named_with_limit_and_rows(
    dataset, numeric, settings, counted, rows, exact
) -> None:
    """The rows outside a numeric domain are counted in the examples, or estimated and called so."""
    data = dataset("train", 1000, numeric("hour", [(0, 23, 900), (23, 25, 100)], integer=True))
    asked = []

    def count(*arguments: Any) -> int | None:
        asked.append(arguments)
        return counted

    result = _failed(_judge(settings, data, _anomaly("hour", "INT_TYPE_BIG_INT"), count))
    assert asked == [("train", "hour", 0.0, 23.0)]
    assert (result.observed, result.bound, result.details["rows"]) == (25.0, "0 to 23", rows)
    assert result.details["rows_exact"] is exact
    expected = (
        f"hour: 25 in {'' if exact else 'about '}{rows} of 1000 rows of split train, limit: 0 to 23 (int_type_big_int)"
    )
    assert result.reason == expected


def test_integers_counted_as_categories_give_exact_rows(dataset, categorical, settings) -> None:
    """Where the statistics count the values, the rows outside a domain need no second look at the examples."""
    data = dataset("train", 1000, categorical("hour", {"5": 990, "24": 3, "30": 7}, integer=True))
    result = _failed(_judge(settings, data, _anomaly("hour", "INT_TYPE_BIG_INT")))
    assert (result.observed, result.details["rows"], result.details["rows_exact"]) == (30.0, 10, True)


def test_unknown_categories_are_listed_with_their_rows(dataset, categorical, settings) -> None:
    """Text outside its domain is named, and all its rows are summed."""
    data = dataset("eval", 1000, categorical("payment_type", {"Cash": 980, "Mobile": 15, "Gift": 5}))
    result = _failed(_judge(settings, data, _anomaly("payment_type", "ENUM_TYPE_UNEXPECTED_STRING_VALUES")))
    assert result.observed == "'Mobile', 'Gift'"
    assert (result.bound, result.details["rows"]) == ("one of 'Cash', 'Card'", 20)


def test_a_missing_required_column_counts_every_row(dataset, settings) -> None:
    """A column that is gone lacks a value in each example."""
    result = _failed(_judge(settings, dataset("train", 400), _anomaly("fare", "SCHEMA_MISSING_COLUMN")))
    assert (result.details["rows"], result.bound) == (400, "at least 1")
    assert "fare: no value" in result.reason


def test_a_wrong_type_names_both_types(dataset, categorical, settings) -> None:
    """A number column that became text says which type came and which was wanted."""
    data = dataset("train", 400, categorical("fare", {"cheap": 400}))
    result = _failed(_judge(settings, data, _anomaly("fare", "UNEXPECTED_DATA_TYPE")))
    assert (result.observed, result.bound) == ("values of type STRING", "type FLOAT")


def test_an_anomaly_without_numbers_keeps_the_words_of_tfdv(dataset, numeric, settings) -> None:
    """A kind that we do not measure is reported with TFDV's description, never dropped."""
    data = dataset("train", 400, numeric("fare", [(0, 1, 400)]))
    result = _failed(
        _judge(settings, data, _anomaly("fare", "FEATURE_TYPE_HIGH_NUMBER_VALUES", "Some examples have 2."))
    )
    assert "Some examples have 2 (feature_type_high_number_values" in result.reason


def test_a_new_column_warns_by_default(dataset, numeric, settings) -> None:
    """The base policy reports a column that the schema lacks and lets the run go on."""
    data = dataset("train", 400, numeric("surge", [(1, 2, 400)]))
    results = _judge(settings, data, _anomaly("surge", "SCHEMA_NEW_COLUMN"))
    assert _failed(results).details["rows"] == 400
    assert report.build(results)["blocked"] is False


@pytest.mark.parametrize(
    ("severity", "blocked"),
    [
        pytest.param({}, True, id="default"),
        pytest.param({"int_type_big_int": "warn"}, False, id="kind"),
        pytest.param({"int_type_big_int": "warn", "hour": "block"}, True, id="feature-wins-over-kind"),
    ],
)
def test_severity_is_by_feature_then_kind_then_default(dataset, numeric, settings, severity, blocked) -> None:
    """The narrower rule decides whether an anomaly blocks."""
    data = dataset("train", 400, numeric("hour", [(0, 25, 400)], integer=True))
    results = _judge({**settings, "severity": severity}, data, _anomaly("hour", "INT_TYPE_BIG_INT"))
    assert report.build(results)["blocked"] is blocked


@pytest.mark.parametrize(
    ("key", "value", "place", "near"),
    [
        pytest.param(
            "severity",
            {"schema_new_colum": "warn"},
            "data_gate.severity.schema_new_colum",
            "schema_new_column",
            id="kind",
        ),
        pytest.param("severity", {"fair": "warn"}, "data_gate.severity.fair", "fare", id="feature"),
        pytest.param("drift", {"per_feature": {"hours": 0.2}}, "data_gate.drift.per_feature.hours", "hour", id="drift"),
    ],
)
def test_a_rule_for_nothing_is_refused(dataset, settings, key, value, place, near) -> None:
    """A misspelt name would silently never apply: the error names its key path and the nearest name."""
    changed = {**settings[key], **value} if key == "drift" else value
    with pytest.raises(ConfigError) as caught:
        _judge({**settings, key: changed}, dataset("train", 400))
    assert caught.value.place == place
    assert near in caught.value.hint


@pytest.mark.parametrize(
    ("split", "examples", "status"),
    [
        pytest.param("train", 99, Status.FAILED, id="train-below-the-limit"),
        pytest.param("train", 100, Status.PASSED, id="train-at-the-limit"),
        pytest.param("train", 0, Status.NO_DATA, id="train-empty"),
        pytest.param("eval", 1, Status.PASSED, id="eval-needs-one"),
        pytest.param("eval", 0, Status.NO_DATA, id="eval-empty"),
    ],
)
def test_example_counts_have_a_verdict(dataset, settings, split: str, examples: int, status: Status) -> None:
    """Too few training examples fail and an empty split is "no data"; both block."""
    results = _judge(settings, dataset(split, examples))
    counted = next(result for result in results if result.name == f"data.examples:{split}")
    assert (counted.status, counted.observed) == (status, examples)
    assert counted.blocks is (status is not Status.PASSED)


@pytest.mark.parametrize(
    ("buckets", "nan", "value", "rows"),
    [
        pytest.param([(0, 1, 390)], 10, "NaN", 10, id="nan"),
        pytest.param([(0, math.inf, 400)], 0, "inf", 1, id="infinity"),
    ],
)
def test_values_that_are_not_finite_fail(dataset, numeric, settings, buckets, nan, value, rows) -> None:
    """NaN and infinities are refused without any domain in the schema."""
    result = _failed(_judge(settings, dataset("train", 400, numeric("fare", buckets, nan=nan))))
    assert (result.name, result.observed, result.details["rows"]) == ("data.finite:fare", value, rows)


def test_without_a_baseline_drift_is_skipped_and_never_passed(dataset, numeric, settings) -> None:
    """A first run has nothing to drift from: one skipped record says so."""
    results = _judge(settings, dataset("train", 400, numeric("fare", [(0, 1, 400)])))
    drift = [result for result in results if result.name.startswith("data.drift")]
    assert [(result.status, result.reason) for result in drift] == [
        (Status.SKIPPED, "no accepted earlier run to compare with")
    ]


def test_the_refusal_line_is_one_line_and_counts_the_rest(dataset, numeric, settings) -> None:
    """The line names the first finding in full and how many more there are; a clean report has no line."""
    data = dataset("train", 50, numeric("hour", [(0, 25, 50)], integer=True))
    record = report.build(_judge(settings, data, _anomaly("hour", "INT_TYPE_BIG_INT"), lambda *_: 2))
    assert record["blocked"] is True
    assert (
        refusal_line(map(GateResult.from_dict, record["gates"]))
        == "split train: 50 rows, limit: at least 100 (min_examples); and 1 more refused check"
    )
    clean = report.build(_judge(settings, dataset("train", 400, numeric("hour", [(0, 23, 400)], integer=True))))
    assert (clean["blocked"], refusal_line(map(GateResult.from_dict, clean["gates"]))) == (False, "")


def test_features_out_of_validation_are_not_compared(dataset, numeric, settings) -> None:
    """A feature that the schema calls deprecated has no drift or skew result."""
    schema = schema_pb2.Schema()
    schema.CopyFrom(SCHEMA)
    schema.feature[1].lifecycle_stage = schema_pb2.DEPRECATED
    train, held_out = (
        dataset(name, 400, numeric("fare", [(low, low + 1, 400)])) for name, low in (("train", 0), ("eval", 5))
    )
    evidence = gate.Evidence(
        {"train": train, "eval": held_out}, {"train": NOTHING, "eval": NOTHING}, schema, None, _unknown
    )
    assert not [result for result in gate.judge(evidence, settings) if result.name.endswith(":fare")]
