"""The difference between two schemas, in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from core.errors import ConfigError
from pipeline.schema_tools import difference

pytestmark = pytest.mark.unit


def _schema(text: str) -> schema_pb2.Schema:
    return text_format.Parse(text, schema_pb2.Schema())


def _lines(before: str, after: str) -> list[str]:
    return [str(change) for change in difference.compare(_schema(before), _schema(after))]


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        pytest.param(
            "",
            'feature { name: "a" type: INT int_domain { min: 0 max: 23 is_categorical: true } }',
            "+ a: type INT, domain 0 to 23 (codes)",
            id="added",
        ),
        pytest.param('feature { name: "a" type: BYTES }', "", "- a: type BYTES", id="removed"),
        pytest.param(
            'feature { name: "a" type: INT }', 'feature { name: "a" type: FLOAT }', "~ a: type INT -> FLOAT", id="type"
        ),
        pytest.param(
            'feature { name: "a" type: FLOAT float_domain { min: 0 max: 9.5 } }',
            'feature { name: "a" type: FLOAT float_domain { min: 0 } }',
            "~ a: domain 0 to 9.5 -> 0 to inf",
            id="numeric-domain",
        ),
        pytest.param(
            'feature { name: "a" type: BYTES domain: "d" } string_domain { name: "d" value: "x" value: "z" }',
            'feature { name: "a" type: BYTES domain: "d" } string_domain { name: "d" value: "x" value: "y" }',
            "~ a: domain 2 values: 'x', 'z' -> 2 values: 'x', 'y' (with 'y'; without 'z')",
            id="values-of-a-shared-domain",
        ),
        pytest.param(
            'feature { name: "a" presence { min_fraction: 1 } }',
            'feature { name: "a" presence { min_count: 1 } }',
            "~ a: presence in at least 100 % of the rows -> in at least 1 rows",
            id="presence",
        ),
        pytest.param(
            'feature { name: "a" }',
            'feature { name: "a" lifecycle_stage: DEPRECATED }',
            "~ a: lifecycle none -> DEPRECATED",
            id="lifecycle",
        ),
        pytest.param(
            'feature { name: "a" not_in_environment: "SERVING" }',
            'feature { name: "a" }',
            '~ a: other not_in_environment: "SERVING" -> none',
            id="whatever-else-differs",
        ),
    ],
)
def test_each_kind_of_change_is_one_line(before: str, after: str, line: str) -> None:
    """Every difference is shown with both sides; none is hidden."""
    changed = [text for text in _lines(before, after) if text.startswith(line)]
    assert len(changed) == len(_lines(before, after)) == 1


def test_equal_schemas_have_no_difference() -> None:
    """The order of features does not count, and the text says that nothing would change."""
    before, after = 'feature { name: "a" } feature { name: "b" }', 'feature { name: "b" } feature { name: "a" }'
    assert _lines(before, after) == []
    assert "no difference" in difference.render([])


def test_the_text_ends_with_a_count() -> None:
    """A reviewer sees at the end how much would change."""
    changes = difference.compare(
        _schema('feature { name: "a" } feature { name: "b" }'), _schema('feature { name: "c" }')
    )
    assert difference.render(changes).splitlines()[-1] == "1 added, 2 removed"


def test_a_schema_of_another_table_is_not_overwritten() -> None:
    """When most curated columns are not in the data, nothing is proposed over them; one lost column is a change."""
    curated = _schema('feature { name: "a" } feature { name: "b" } feature { name: "c" }')
    gone = " lifecycle_stage: DEPRECATED }"
    other = _schema(
        f'feature {{ name: "a"{gone} feature {{ name: "b"{gone} feature {{ name: "c" }} feature {{ name: "d" }}'
    )
    with pytest.raises(ConfigError, match="2 of its 3 columns are not in this data"):
        difference.refuse_another_table(curated, other, Path("taxi.pbtxt"))
    changed = _schema(f'feature {{ name: "a"{gone} feature {{ name: "b" }} feature {{ name: "c" }}')
    difference.refuse_another_table(curated, changed, Path("taxi.pbtxt"))
