"""Makes the import of TFX cheaper: two fifths of it are work that is done over and over for the same answer."""

from __future__ import annotations

import functools
import gc
import importlib.metadata
from collections.abc import Iterator
from contextlib import contextmanager

# Objects that must be created, net, before the youngest ones are looked at. Building graphs creates millions that live
# on; Python's own 700 would walk them again and again.
_YOUNG_OBJECTS = 50_000


@contextmanager
def large_import() -> Iterator[None]:
    """Speeds up imports of very large packages inside the block.

    Two causes, both measured by benchmarks/imports.py. The garbage collector walks everything that was imported so
    far, many times, and finds nothing: it is off inside the block, and what was imported is set apart from later
    collections for good. And each of fifteen Google client packages lists the files of all installed distributions to
    name itself in a warning: the list is made once.
    """
    was_enabled = gc.isenabled()
    scan = importlib.metadata.packages_distributions
    gc.disable()
    importlib.metadata.packages_distributions = functools.lru_cache(maxsize=None)(scan)
    try:
        yield
    finally:
        importlib.metadata.packages_distributions = scan
        gc.freeze()
        if was_enabled:
            gc.enable()
        _, *older = gc.get_threshold()
        gc.set_threshold(_YOUNG_OBJECTS, *older)
