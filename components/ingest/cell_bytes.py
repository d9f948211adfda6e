"""Quick looks at the bytes of a whole column of text cells, to tell where one cast is enough."""

from __future__ import annotations

from typing import Any


def is_plain(cells: Any) -> bool:
    """Returns True when no cell holds a character that decimal numbers do without.

    Arrow's casts take more than `kinds.patterns` do: hexadecimal such as 0x1F.

    Args:
        cells: pyarrow string array; null is missing.
    """
    import numpy as np

    offsets, text = _text(cells)
    plain = np.zeros(256, bool)
    plain[np.frombuffer(b"0123456789+-.eE", np.uint8)] = True
    return bool(plain[text[offsets[0] : offsets[-1]]].all())


def _text(cells: Any) -> tuple[Any, Any]:
    """Returns int32[cells + 1] offsets and the uint8 bytes that they point into."""
    import numpy as np

    _, offsets, data = cells.buffers()
    bounds = np.frombuffer(offsets, np.int32)[cells.offset : cells.offset + len(cells) + 1]
    return bounds, np.frombuffer(data if data is not None else b"", np.uint8)


def has_leading_zero(cells: Any) -> bool:
    """Returns True when a cell begins with a zero and another digit, signs aside."""
    import numpy as np

    offsets, text = _text(cells)
    if not len(text):
        return False
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:]
    last = len(text) - 1
    signed = np.isin(text[np.minimum(starts, last)], np.frombuffer(b"+-", np.uint8))
    starts = starts + signed
    second = text[np.minimum(starts + 1, last)]
    zero = (text[np.minimum(starts, last)] == ord("0")) & (second >= ord("0")) & (second <= ord("9"))
    return bool((zero & (ends - starts >= 2)).any())


def fractions(cells: Any) -> int:
    """Returns how many plain numbers have a fraction or an exponent."""
    import numpy as np

    offsets, text = _text(cells)
    used = text[offsets[0] : offsets[-1]]
    marks = np.flatnonzero((used == ord(".")) | (used == ord("e")) | (used == ord("E"))) + offsets[0]
    # A number such as 1.5e3 has two marks: count the cells that the marks are in.
    owners = np.searchsorted(offsets, marks, side="right")
    return int(np.count_nonzero(np.diff(owners, prepend=-1)))


def widest_integer(cells: Any, least: int) -> int:
    """Returns the most bytes of a whole number among plain numbers; 0 when none has `least` bytes."""
    from pyarrow import compute

    if max_bytes(cells) < least:
        return 0
    whole = compute.match_substring_regex(cells, rf"^-?[0-9]{{{least - 1},}}$")
    return max_bytes(cells.filter(whole))


def max_bytes(cells: Any) -> int:
    """Returns the length of the longest cell in bytes; 0 without one."""
    from pyarrow import compute

    return int(compute.max(compute.binary_length(cells)).as_py() or 0)
