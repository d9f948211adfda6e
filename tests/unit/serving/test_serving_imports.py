"""What importing the room costs."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import serving

pytestmark = pytest.mark.unit


def test_serving_is_imported_without_heavy_libraries() -> None:
    """Every module of the room loads without TensorFlow, TFX, Beam and boto3: the command stays fast."""
    modules = [module.name for module in pkgutil.walk_packages(serving.__path__, "serving.")]
    assert "serving.s3_store" in modules
    code = (
        f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
        "print(sorted({'tensorflow', 'tfx', 'apache_beam', 'boto3', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "[]"
