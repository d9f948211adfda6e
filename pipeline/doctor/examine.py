"""Runs every check, in the order in which a person would fix what they find."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path

from core.accelerators import find_graphics, find_tensorrt
from pipeline.doctor import imports, machine, metadata_store, packages
from pipeline.doctor.finding import Finding, Level

# The folder that holds our packages: a checkout, or site-packages.
ROOT = Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Target:
    """The places that a run would use.

    Attributes:
        run_root: Folder of artifacts and metadata.
        metadata: `sqlite` or a mysql:// URL.
        serving_root: Folder or s3:// URI of pushed versions.
        serving_min_free_mib: What has to stay free there.
    """

    run_root: str
    metadata: str
    serving_root: str
    serving_min_free_mib: int


def examine(target: Target, root: Path = ROOT) -> list[Finding]:
    """Returns what was found, in about a second and without loading TensorFlow, TFX or Beam.

    Args:
        target: The places that a run would use.
        root: The folder that holds our packages and requirements/lock.txt.
    """
    graphics = find_graphics()
    needed_gib = target.serving_min_free_mib / 1024
    return [
        *packages.check_python(),
        *packages.check_packages(root / "requirements" / "lock.txt"),
        *imports.check_owners(root),
        *imports.check_bytecode(),
        *imports.check_keras(),
        machine.check_disk("run.root", target.run_root),
        machine.check_disk("serving.root", target.serving_root, needed_gib, needed_gib * 2),
        *_check_object_store(target.serving_root),
        machine.check_cores(),
        machine.check_memory(),
        machine.check_gpu(graphics),
        machine.check_tensorrt(find_tensorrt(), graphics),
        metadata_store.check_metadata(target.metadata, target.run_root),
    ]


def _check_object_store(serving_root: str) -> list[Finding]:
    if not serving_root.startswith("s3://"):
        return []
    if importlib.util.find_spec("boto3"):
        return [Finding("machine", "s3 client", Level.OK, "boto3", "boto3")]
    fix = "install the extra: uv pip install 'forebay[s3]', or make env in a checkout"
    return [Finding("machine", "s3 client", Level.BLOCKER, "not installed", "boto3", fix)]
