"""Keeps the chatter of TensorFlow and Beam off the screen while a verb computes."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def libraries() -> Iterator[None]:
    """Lets only errors of the libraries through, for as long as the context lasts."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
