"""What the curated schema can tell before anything runs."""

from __future__ import annotations

import pytest

from core.errors import ConfigError
from core.settings import load
from core.settings.load import BASE_FILE
from pipeline.stages import checks

pytestmark = pytest.mark.unit

PROJECT = BASE_FILE.parents[1]
SCHEMA = f"schema.path={PROJECT / 'data' / 'schemas' / 'taxi.pbtxt'}"


def check(*flags: str) -> None:
    """Checks the taxi recipe with these flags."""
    checks.check(load([str(BASE_FILE.parent / "taxi.yaml")], [SCHEMA, *flags]).settings)


def test_the_taxi_recipe_passes() -> None:
    """The shipped recipe fits its schema."""
    check()


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("features.numeric=[trip_mile]", "Did you mean 'trip_miles'"),
        ("features.numeric=[company]", "a number is needed"),
        ("features.bucketized={trip_mles: 4}", "trip_miles"),
        ("features.categorical={fare: {integers: 3}}", "does not hold integers"),
        ("data_gate.severity={schema_new_colum: warn}", "schema_new_column"),
        ("data_gate.drift.per_feature={fair: 0.1}", "fare"),
        ("serving.root=s3://", "names no bucket"),
        ("user_code=no.such.package", "no module no.such.package.preprocessing"),
        ("user_code=pipeline.models.image", "Set user_code: pipeline.models.tabular"),
    ],
    ids=["column", "numeric", "bucketized", "integers", "severity", "per-feature", "bucket", "code", "kind"],
)
def test_what_the_schema_rules_out_is_refused_before_the_run(flag: str, says: str) -> None:
    """Types, names and places that would fail in the tenth minute fail at once, with the fix."""
    with pytest.raises(ConfigError) as caught:
        check(flag, "features.crossed=[]") if flag.startswith("features") else check(flag)
    assert says in str(caught.value)


def test_a_text_label_needs_its_positive_value() -> None:
    """A Yes/No label is refused with the key that mends it, and passes with it."""
    label = "label={name: churned, column: payment_type%s}"
    columns = ("features.categorical={company: {top_k: 9}}", "evaluate.slices=[]", "features.crossed=[]")
    bound = "evaluate.thresholds={auc: {min: 0.6}}"
    with pytest.raises(ConfigError, match=r"label\.positive"):
        check(label % "", *columns, bound)
    check(label % ", positive: Cash", *columns, bound)
