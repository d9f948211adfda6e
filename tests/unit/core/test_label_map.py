"""The label map: positions are an accident, names are what counts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from core import label_map
from core.errors import DataError
from core.label_map import LabelMap

pytestmark = pytest.mark.unit

LABELS = ("tops > shirt", "hat", "menswear > tops > shirt", "tops > t-shirt")


def test_a_parent_is_every_level_but_the_last() -> None:
    """Two leaves of one name stay apart, and a class of one level is its own parent (case I07)."""
    assert [label_map.parent_of(label) for label in LABELS] == ["tops", "hat", "menswear > tops", "tops"]
    labels = LabelMap(LABELS)
    assert labels.parents == ("hat", "menswear > tops", "tops")
    assert [labels.parents[index] for index in labels.parent_indices()] == ["tops", "hat", "menswear > tops", "tops"]


def test_labels_are_joined_by_name() -> None:
    """Another order gives other numbers for the same names; an unknown name gives -1 (case I10)."""
    wanted = ["tops > t-shirt", "tops > shirt", "socks"]
    assert LabelMap(LABELS).indices(wanted).tolist() == [3, 0, -1]
    assert LabelMap(LABELS[::-1]).indices(wanted).tolist() == [0, 3, -1]
    assert LabelMap(LABELS).indices([]).dtype == np.int64


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """A model's directory keeps its map in assets.extra."""
    LabelMap(LABELS).write(str(tmp_path))
    assert (tmp_path / "assets.extra" / "labels.json").is_file()
    assert label_map.read(str(tmp_path)) == LabelMap(LABELS)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(None, id="absent"),
        pytest.param("{", id="cut"),
        pytest.param(json.dumps({"format_version": 2, "classes": []}), id="later-format"),
        pytest.param(json.dumps({"format_version": 1, "classes": [{"index": 1, "label": "a"}]}), id="order"),
        pytest.param(
            json.dumps({"format_version": 1, "classes": [{"index": 0, "label": "a"}, {"index": 1, "label": "a"}]}),
            id="twice",
        ),
        pytest.param(json.dumps([]), id="list"),
    ],
)
def test_a_map_that_is_none_is_refused_with_its_place(tmp_path: Path, document: str | None) -> None:
    """Whatever is wrong with the file, the error names it."""
    path = tmp_path / label_map.FILE_NAME
    path.parent.mkdir()
    if document is not None:
        path.write_text(document, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        label_map.read(str(tmp_path))
    assert caught.value.place == str(path)
