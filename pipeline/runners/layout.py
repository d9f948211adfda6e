"""Where a pipeline keeps things below its root.

<run.root>/<project>.<recipe>/
    <node id>/<output>/<execution id>/   artifacts, as TFX lays them out
    _metadata.sqlite                     ML Metadata
    _lock                                who is running
    _cache/<node id>/<key>.json          what can be reused
    _runs/<run id>/run.json, run.log, settings.json
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from core.errors import EnvironmentProblem


@dataclasses.dataclass(frozen=True)
class PipelineRoot:
    """The directory of one pipeline; absolute."""

    path: Path

    @property
    def lock(self) -> Path:
        """The file that says who is running."""
        return self.path / "_lock"

    @property
    def sqlite(self) -> Path:
        """The ML Metadata file, when no server is configured."""
        return self.path / "_metadata.sqlite"

    def artifacts(self, store: str) -> Path:
        """Returns the directory of the artifacts that one metadata store records."""
        return self.path / store

    @property
    def runs(self) -> Path:
        """The directory of run directories."""
        return self.path / "_runs"

    def run(self, run_id: str) -> Path:
        """Returns the directory of one run."""
        return self.runs / run_id


def open_root(run_root: str, name: str) -> PipelineRoot:
    """Returns the pipeline's root, created when missing.

    Args:
        run_root: The setting `run.root`.
        name: Name of the pipeline.

    Raises:
        EnvironmentProblem: The directory cannot be made or written.
    """
    path = locate(run_root) / name
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentProblem(
            f"the pipeline root cannot be made: {error.strerror}",
            place=f"run.root {path}",
            hint="Choose another run.root.",
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        mode = oct(path.stat().st_mode & 0o7777)
        raise EnvironmentProblem(
            f"the pipeline root is not writable (mode {mode})",
            place=f"run.root {path}",
            hint="Change its mode or run.root.",
        )
    return PipelineRoot(path)


def locate(run_root: str) -> Path:
    """Returns the setting `run.root` as an absolute path."""
    return Path(run_root).expanduser().absolute()


def existing_roots(run_root: str) -> Iterator[PipelineRoot]:
    """Yields the pipelines that have run below `run.root`, by name."""
    base = locate(run_root)
    if base.is_dir():
        for path in sorted(base.iterdir()):
            if (path / "_runs").is_dir():
                yield PipelineRoot(path)


def new_run_id(now: datetime.datetime) -> str:
    """Returns a run id that sorts by time and is unique among machines that share a metadata server."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
