"""The label map of a classifier: which position of its answer means which class. Joined by name, never by number."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import DataError
from core.files import write_json_atomic

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Between the levels of a class: "tops > shirt".
SEPARATOR = " > "
# Where a SavedModel keeps its label map, below its own directory.
FILE_NAME = "assets.extra/labels.json"
FORMAT_VERSION = 1


@dataclasses.dataclass(frozen=True)
class LabelMap:
    """The classes of a model in the order of its outputs.

    Attributes:
        labels: Full class paths, such as "tops > shirt"; the place in this tuple is the class' index.
    """

    labels: tuple[str, ...]

    @property
    def parents(self) -> tuple[str, ...]:
        """Every parent once, sorted by name."""
        return tuple(sorted({parent_of(label) for label in self.labels}))

    def parent_indices(self) -> npt.NDArray[np.int64]:
        """Returns int64[classes], the index in `parents` of each class' parent."""
        import numpy as np

        index = {parent: number for number, parent in enumerate(self.parents)}
        return np.array([index[parent_of(label)] for label in self.labels], np.int64)

    def indices(self, labels: Sequence[str]) -> npt.NDArray[np.int64]:
        """Returns int64[labels], the index of each class by its name; -1 for a class that the model does not know."""
        import numpy as np

        index = {label: number for number, label in enumerate(self.labels)}
        return np.array([index.get(label, -1) for label in labels], np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        classes = [
            {"index": number, "label": label, "parent": parent_of(label)} for number, label in enumerate(self.labels)
        ]
        return {"format_version": FORMAT_VERSION, "classes": classes}

    def write(self, model_dir: str) -> None:
        """Writes the map into a SavedModel's directory on a local disk."""
        write_json_atomic(Path(model_dir) / FILE_NAME, self.to_dict())


def parent_of(label: str) -> str:
    """Returns all levels of a class but the last; a class of one level is its own parent."""
    return label.rpartition(SEPARATOR)[0] or label


def read(model_dir: str) -> LabelMap:
    """Returns the label map in a SavedModel's directory.

    Raises:
        DataError: There is none, or it is not one of ours.
    """
    path = Path(model_dir) / FILE_NAME
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        classes = document["classes"]
        labels = tuple(str(entry["label"]) for entry in classes)
        ordered = [entry["index"] for entry in classes] == list(range(len(classes)))
    except FileNotFoundError:
        raise DataError("the model has no label map", place=str(path), hint="train it again") from None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"the label map cannot be read: {error}", place=str(path)) from None
    if document.get("format_version") != FORMAT_VERSION or not ordered or len(set(labels)) != len(labels):
        raise DataError("the label map is of another format, or names a class twice", place=str(path))
    return LabelMap(labels)
