"""The settings that the image recipe's Trainer reads."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from core.errors import ConfigError
from core.settings.load import BASE_FILE, load
from pipeline.models.image import features

pytestmark = pytest.mark.unit


@pytest.fixture
def sections() -> dict[str, Any]:
    """The two sections as the stage writes them."""
    settings = load([str(BASE_FILE.parent / "clothing.yaml")]).settings
    return {name: getattr(settings, name).model_dump(mode="json") for name in ("classifier", "training")}


def test_both_sections_come_back_as_they_were_written(sections: dict[str, Any]) -> None:
    """The settings survive the JSON text of custom_config, and sections of other recipes are left alone."""
    read = features.read_settings({"settings": json.dumps({**sections, "network": {"hidden_units": [1]}})})
    assert read.classifier.model_dump(mode="json") == sections["classifier"]
    assert read.training.model_dump(mode="json") == sections["training"]


@pytest.mark.parametrize(
    ("kept", "lacking"),
    [(["classifier"], "training"), (["training"], "classifier"), ([], "classifier and training")],
    ids=["no training", "no classifier", "neither"],
)
def test_a_missing_section_is_named(sections: dict[str, Any], kept: list[str], lacking: str) -> None:
    """What the Trainer was not given is a configuration error that names it."""
    with pytest.raises(ConfigError, match=f"lack {lacking}"):
        features.read_settings({"settings": json.dumps({name: sections[name] for name in kept})})


@pytest.mark.parametrize("config", [None, {}, {"settings": {"classifier": {}}}], ids=["none", "empty", "no text"])
def test_settings_that_are_no_text_are_told(config: Any) -> None:
    """A custom_config without the JSON text says where the text belongs."""
    with pytest.raises(ConfigError, match=r"custom_config\.settings.*JSON"):
        features.read_settings(config)


def test_the_names_need_no_tensorflow() -> None:
    """Whoever needs a name of the recipe does not pay for TensorFlow; a process of its own, for others may have it."""
    code = "import sys, pipeline.models.image.features; sys.exit('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
