"""What every unit test is held to."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

_HEAVY = ("tensorflow", "tfx", "apache_beam")


@pytest.fixture(autouse=True)
def _stays_light() -> Iterator[None]:
    """Fails the test that is the first to load TensorFlow, TFX or Beam: it belongs to the integration tier."""
    before = {name for name in _HEAVY if name in sys.modules}
    yield
    loaded = {name for name in _HEAVY if name in sys.modules} - before
    assert not loaded, f"a unit test loaded {', '.join(sorted(loaded))}"
