"""Checks before a run: the columns that settings name are those of the schema, however it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError
from core.settings import load
from pipeline.stages import checks

pytestmark = pytest.mark.unit

PROJECT = Path(__file__).parents[4]


@pytest.fixture
def settings_for(tmp_path: Path) -> Any:
    """Returns a function: schema text -> settings that use the columns fare and tips."""

    def make(text: str) -> Any:
        (tmp_path / "s.pbtxt").write_text(text, encoding="utf-8")
        (tmp_path / "table.csv").write_text("fare,tips\n1,2\n", encoding="utf-8")
        chosen = {"schema.path": tmp_path / "s.pbtxt", "data.path": tmp_path / "table.csv", "label.column": "tips"}
        assignments = [
            *(f"{key}={value}" for key, value in chosen.items()),
            "features.numeric=[fare]",
            "evaluate.thresholds.auc.min=0.5",
        ]
        return load([], assignments).settings

    return make


@pytest.mark.parametrize(
    "text",
    [
        'feature { name: "fare" type: FLOAT } feature { name: "tips" type: FLOAT }',
        "feature: <type: FLOAT name: 'fare'>; feature <name: 'ti' 'ps'>  # as protobuf lets one write",
    ],
    ids=["one-line", "other-marks"],
)
def test_columns_are_found_in_any_layout(settings_for: Any, text: str) -> None:
    """A valid schema is accepted whatever its line breaks, quotes and brackets."""
    checks.check(settings_for(text))


def test_names_of_domains_are_no_columns(settings_for: Any) -> None:
    """A string_domain called tips does not stand for a column."""
    text = 'feature {\n  name: "fare"\n}\nstring_domain {\n  name: "tips"\n  value: "x"\n}\n'
    with pytest.raises(ConfigError, match="no column 'tips'"):
        checks.check(settings_for(text))


def test_a_schema_that_is_none_is_refused_with_its_line(settings_for: Any, tmp_path: Path) -> None:
    """What would fail minutes later fails before the run."""
    with pytest.raises(ConfigError, match="not a schema") as caught:
        checks.check(settings_for('feature {\n  name: "fare"\n  tpye: FLOAT\n}\n'))
    assert caught.value.place == f"{tmp_path / 's.pbtxt'}:3"
