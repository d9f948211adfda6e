"""Settings: read from YAML files and flags, merged, validated and frozen, without TensorFlow."""

from core.settings.load import Loaded, load
from core.settings.schema import Settings

__all__ = ["Loaded", "Settings", "load"]
