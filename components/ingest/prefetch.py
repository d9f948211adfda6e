"""Runs an iterator one step ahead on another thread, so that reading overlaps with writing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """Yields the items of an iterator, in order; the next one is computed while the caller uses the last.

    At most one item waits. An exception of the iterator is raised where its item would have been.
    """
    done = object()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="read") as pool:
        pending = pool.submit(next, items, done)
        while (item := pending.result()) is not done:
            pending = pool.submit(next, items, done)
            yield item  # type: ignore[misc]
