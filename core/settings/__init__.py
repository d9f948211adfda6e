"""Settings: read from YAML files and flags, merged, validated and frozen, without TensorFlow."""

from core.settings.load import Layer, Loaded, load
from core.settings.schema import Settings

__all__ = ["Layer", "Loaded", "Settings", "load"]
