"""Arrow values of any supported type as the three that tf.Example has: int64, float32 and bytes."""

from __future__ import annotations

from typing import Any

from core.settings.data import ColumnType


def natural_type(type_: Any) -> ColumnType | None:
    """Returns the column type that an Arrow type becomes; None when it is not supported.

    Lists of a supported type become multivalent features. Dates and times become ISO 8601 text, decimals floats.
    """
    from pyarrow import types

    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        inner = type_.value_type
        return None if _is_nested(inner) else natural_type(inner)
    if types.is_dictionary(type_):
        return natural_type(type_.value_type)
    if types.is_boolean(type_):
        return "boolean"
    if types.is_integer(type_):
        return "integer"
    if types.is_floating(type_) or types.is_decimal(type_):
        return "float"
    if is_text(type_) or types.is_date(type_) or types.is_timestamp(type_) or types.is_null(type_):
        return "text"
    return None


def converts(type_: Any, wanted: ColumnType) -> bool:
    """Returns True when values of an Arrow type can be declared as `wanted`.

    A number may become text or a wider number, never a narrower one; a moment may become seconds since 1970.
    """
    from pyarrow import types

    natural = natural_type(type_)
    allowed: dict[ColumnType, tuple[ColumnType, ...]] = {
        "boolean": ("boolean", "integer"),
        "integer": ("integer", "float", "text"),
        "float": ("float", "text"),
        "text": ("text",),
    }
    if types.is_date(type_) or types.is_timestamp(type_):
        return wanted in ("text", "integer")
    return natural is not None and wanted in allowed[natural] and (natural == wanted or not _is_nested(type_))


def conversion_note(type_: Any) -> str:
    """Returns how values of a type are changed on the way to tf.Example; empty when they are not."""
    from pyarrow import types

    if types.is_decimal(type_) or types.is_float64(type_):
        return f"{type_} is stored as float32"
    if types.is_date(type_) or types.is_timestamp(type_):
        return f"{type_} is stored as ISO 8601 text"
    return ""


def is_text(type_: Any) -> bool:
    """Returns True for strings and byte strings."""
    from pyarrow import types

    if types.is_dictionary(type_):
        return is_text(type_.value_type)
    kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    return any(check(type_) for check in kinds)


def without_empty(values: Any) -> Any:
    """Returns text values with those of length zero made missing."""
    import pyarrow
    from pyarrow import compute, types

    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    empty = compute.equal(compute.binary_length(values), 0)
    return compute.if_else(compute.fill_null(empty, False), pyarrow.scalar(None, values.type), values)


def convert(values: Any, wanted: ColumnType) -> tuple[Any, dict[int, str]]:
    """Returns values as int64, float32 or binary (or lists of these), and {row: problem} of those that do not fit.

    Args:
        values: pyarrow array of a type for which `converts` holds.
        wanted: The column's type.
    """
    import pyarrow
    from pyarrow import compute, types

    type_ = values.type
    if types.is_dictionary(type_):
        return convert(values.cast(type_.value_type), wanted)
    if _is_nested(type_):
        return _convert_lists(values, wanted)
    if types.is_uint64(type_) and wanted == "integer":
        large = compute.greater(values, pyarrow.scalar((1 << 63) - 1, pyarrow.uint64()))
        problems = dict.fromkeys(_rows(large), "does not fit into 64 bits with a sign")
        values = compute.if_else(compute.fill_null(large, False), pyarrow.scalar(None, type_), values)
        return values.cast(pyarrow.int64()), problems
    if types.is_date(type_) or types.is_timestamp(type_):
        return _convert_moments(values, wanted), {}
    if wanted == "text":
        text = values.cast(pyarrow.string()) if not is_text(type_) else values
        return text.cast(pyarrow.binary()), {}
    if wanted == "float":
        wide = values.cast(pyarrow.float64()) if not types.is_float16(type_) else _from_half(values)
        return wide.cast(pyarrow.float32()), {}
    return values.cast(pyarrow.int64()), {}


def without_non_finite(values: Any) -> tuple[Any, list[int]]:
    """Returns values with nan and inf made missing, and the rows that had one; a list with one becomes missing."""
    import numpy as np
    import pyarrow
    from pyarrow import compute, types

    if types.is_floating(values.type):
        odd = _rows(compute.invert(compute.is_finite(values)))
    elif _is_nested(values.type) and types.is_floating(values.type.value_type):
        inner = compute.invert(compute.is_finite(values.flatten()))
        odd = sorted(set(compute.filter(compute.list_parent_indices(values), inner).to_pylist()))
    else:
        return values, []
    if not odd:
        return values, []
    hit = np.zeros(len(values), bool)
    hit[odd] = True
    return compute.if_else(pyarrow.array(hit), pyarrow.scalar(None, values.type), values), odd


def _convert_lists(values: Any, wanted: ColumnType) -> tuple[Any, dict[int, str]]:
    """Returns lists of any layout as list_ of converted values; a null inside a list is left out."""
    import numpy as np
    import pyarrow
    from pyarrow import compute, types

    # Flattening leaves out what lies behind a missing list, so its length counts as zero.
    if types.is_fixed_size_list(values.type):
        lengths = values.is_valid().to_numpy(zero_copy_only=False) * values.type.list_size
    else:
        lengths = compute.fill_null(values.value_lengths(), 0).to_numpy()
    parents = np.repeat(np.arange(len(values)), lengths)
    inner, problems = convert(values.flatten(), wanted)
    bad = {int(parents[index]): problem for index, problem in problems.items()}
    if inner.null_count:
        present = inner.is_valid().to_numpy(zero_copy_only=False)
        lengths = np.bincount(parents[present], minlength=len(values))
        inner = inner.drop_null()
    return pyarrow.ListArray.from_arrays(_offsets(values, lengths), inner), bad


def _offsets(values: Any, lengths: Any) -> Any:
    """Returns list offsets over flattened values; null where the list is missing."""
    import numpy as np
    import pyarrow

    bounds = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    missing = np.append(values.is_null().to_numpy(zero_copy_only=False), False)
    return pyarrow.array(bounds, pyarrow.int32(), mask=missing)


def _convert_moments(values: Any, wanted: ColumnType) -> Any:
    import pyarrow
    from pyarrow import compute, types

    if wanted == "integer":
        # Seconds since 1970-01-01 UTC; finer parts are cut off.
        whole = values.cast(pyarrow.timestamp("s", tz=getattr(values.type, "tz", None)), safe=False)
        return whole.cast(pyarrow.int64())
    if types.is_date(values.type):
        return values.cast(pyarrow.date32()).cast(pyarrow.string()).cast(pyarrow.binary())
    # Without its zone the value stays in UTC, so the text says so; a fraction of zero says nothing.
    form = "%Y-%m-%dT%H:%M:%SZ" if values.type.tz else "%Y-%m-%dT%H:%M:%S"
    text = compute.strftime(values.cast(pyarrow.timestamp(values.type.unit)), format=form)
    return compute.replace_substring_regex(text, r"[.]0+(Z?)$", r"\1").cast(pyarrow.binary())


def _from_half(values: Any) -> Any:
    import numpy as np
    import pyarrow

    missing = values.is_null().to_numpy(zero_copy_only=False)
    numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
    return pyarrow.array(numbers, pyarrow.float64(), mask=missing)


def _is_nested(type_: Any) -> bool:
    from pyarrow import types

    # This pyarrow does not count fixed-size lists among nested types.
    return bool(types.is_nested(type_) or types.is_fixed_size_list(type_))


def _rows(mask: Any) -> list[int]:
    import numpy as np
    from pyarrow import compute

    rows: list[int] = np.flatnonzero(compute.fill_null(mask, False).to_numpy(zero_copy_only=False)).tolist()
    return rows
