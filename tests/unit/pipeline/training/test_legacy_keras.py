"""Which Keras a process gets, and what it costs to say so."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("module", ["pipeline.training.legacy_keras", "pipeline.models.tabular.features"])
def test_the_choice_is_made_at_import_without_tensorflow(module: str) -> None:
    """Importing the module sets the variable, wins over another value, and does not import TensorFlow."""
    code = f"import os, sys, {module}; print(os.environ['TF_USE_LEGACY_KERAS'], 'tensorflow' in sys.modules)"
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "0"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["1", "False"]
