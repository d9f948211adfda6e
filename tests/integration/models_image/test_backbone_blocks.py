"""What the settings say of a backbone, against the backbone."""

from __future__ import annotations

import pytest

from core.settings.images import BACKBONE_BLOCKS
from pipeline.models.image import efficientnet_lite

pytestmark = pytest.mark.integration


def test_the_settings_know_how_many_blocks_there_are() -> None:
    """The number that is refused before anything runs is that of the network's own table."""
    assert len(efficientnet_lite.BLOCKS) == BACKBONE_BLOCKS["efficientnet_lite0"]
