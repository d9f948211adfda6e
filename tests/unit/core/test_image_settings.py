"""Settings of recipes for photos: what cannot work is refused when it is read."""

from __future__ import annotations

import pytest

from core.errors import ConfigError
from core.settings import load
from core.settings.load import BASE_FILE

pytestmark = pytest.mark.unit

CLOTHING = str(BASE_FILE.parent / "clothing.yaml")
TAXI = str(BASE_FILE.parent / "taxi.yaml")


def test_the_clothing_recipe_loads_and_reads_no_columns() -> None:
    """A recipe for photos names no feature; a table is none."""
    settings = load([CLOTHING]).settings
    assert settings.is_images
    assert not settings.features.columns()
    assert not load([TAXI]).settings.is_images


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["data.split.method=hash"], "need method stratified"),
        (["data.split.column=product"], "reads no split.column"),
        (["data.images.group_pattern=^(["], "no regular expression"),
        (["data.images.group_pattern=^[0-9]+"], "exactly one group"),
        (["data.images.max_side_px=8"], "greater than or equal to 32"),
        (["classifier.backbone=small_cnn"], "has no ImageNet weights"),
        (["classifier.feature_epochs=0", "classifier.fine_tune_epochs=0"], "nothing would be trained"),
        (["classifier.weights=none", "classifier.fine_tune_epochs=0"], "backbone must be trained"),
        (["classifier.views=0"], "greater than or equal to 1"),
        (["classifier.augment.zoom_share=1.0"], "less than 1"),
        (["classifier.image_pix=64"], "Did you mean 'image_px'"),
    ],
    ids=[
        "split", "split-column", "pattern", "no-group", "tiny-side", "weights", "no-epochs", "untrained", "views",
        "zoom", "key",
    ],
)  # fmt: skip
def test_impossible_settings_are_refused_with_the_reason(flags: list[str], says: str) -> None:
    """Each refusal says in words what does not go together."""
    with pytest.raises(ConfigError) as caught:
        load([CLOTHING], flags)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["data.split.method=stratified"], "is for kind images"),
        (["features={numeric: [], bucketized: {}, categorical: {}, crossed: []}"], "names no column"),
    ],
    ids=["stratified", "no-feature"],
)
def test_a_table_needs_columns_and_another_split(flags: list[str], says: str) -> None:
    """What only photos have is refused for a table."""
    with pytest.raises(ConfigError) as caught:
        load([TAXI], flags)
    assert says in str(caught.value)
