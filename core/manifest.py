"""The manifest inside every pushed version: what its files are, where they came from and why it was pushed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Literal, get_args

from core.errors import DataError
from core.files import sha256_json

FORMAT_VERSION = 1

# Relative to the version directory. TensorFlow Serving leaves assets.extra to others.
EXTRA_DIRECTORY = "assets.extra"
MANIFEST_FILE = f"{EXTRA_DIRECTORY}/manifest.json"
WARMUP_FILE = f"{EXTRA_DIRECTORY}/tf_serving_warmup_requests"

PushedBy = Literal["run", "rollback"]


@dataclasses.dataclass(frozen=True)
class FileRecord:
    """One file of a version.

    Attributes:
        sha256: Hex SHA-256 of its bytes.
        size_bytes: Its length.
    """

    sha256: str
    size_bytes: int


@dataclasses.dataclass(frozen=True)
class Provenance:
    """Where a model came from. A rollback hands it on unchanged.

    Attributes:
        run_id: The pipeline run that made the model; empty when it was pushed by hand.
        digests: Hex digests by what they are of: data, code, settings.
        metrics: Metric name to value, on the eval split.
        gates: Gate records, as `core.gates.GateResult.to_dict` writes them.
        optimizer: What the optimizer decided; None when no optimizer ran.
        host: `core.fingerprint.collect` of the machine that pushed it first: hardware, and the versions of
            TensorFlow, TensorRT and the rest.
        worst_class: The class that the model knows worst: label, recall, examples. None for a model without classes,
            and in manifests that were written before there were any.
    """

    run_id: str = ""
    digests: Mapping[str, str] = dataclasses.field(default_factory=dict)
    metrics: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    gates: tuple[Mapping[str, Any], ...] = ()
    optimizer: Mapping[str, Any] | None = None
    host: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    worst_class: Mapping[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class Rollback:
    """Why a version is a copy of an older one.

    Attributes:
        source_version: The version whose files were pushed again.
        source_digest: Model digest of those files.
        left_version: The version that was the newest before, and is bad from now on.
        left_digest: Model digest of that one: it still counts as bad after its directory is gone. Empty when its
            manifest could not be read.
        reason: What the operator said.
    """

    source_version: int
    source_digest: str
    left_version: int
    left_digest: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Manifest:
    """Everything that Forebay knows of one pushed version.

    Attributes:
        project: Directory level under the serving root.
        model: Name that the model is served under.
        version: The version number, equal to the name of its directory.
        pushed_at: UTC time of the push, ISO 8601 with seconds.
        pushed_by: `run` or `rollback`.
        files: Relative posix path to record, for every file but the manifest itself.
        provenance: Where the model came from.
        rollback: Set when and only when `pushed_by` is `rollback`.
    """

    project: str
    model: str
    version: int
    pushed_at: str
    pushed_by: PushedBy
    files: Mapping[str, FileRecord]
    provenance: Provenance = Provenance()
    rollback: Rollback | None = None

    @property
    def model_digest(self) -> str:
        """One digest of what the model computes: every file outside assets.extra. Equal for a model and its copy."""
        return model_digest(self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files but the manifest."""
        return sum(record.size_bytes for record in self.files.values())

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form; `Manifest.parse` reads it back."""
        record = dataclasses.asdict(self)
        record.update(record.pop("provenance"))
        record["format_version"] = FORMAT_VERSION
        record["model_digest"] = self.model_digest
        record["source_version"] = self.rollback.source_version if self.rollback else None
        return record

    def to_json(self) -> bytes:
        """Returns the bytes of the manifest file; equal manifests give equal bytes."""
        return (json.dumps(self.to_dict(), indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8")

    @classmethod
    def parse(cls, content: bytes, place: str) -> Manifest:
        """Returns the manifest that `to_json` wrote.

        Args:
            content: Bytes of the manifest file.
            place: Where they were read, for the error.

        Raises:
            DataError: The bytes are no manifest, or one of a format that this Forebay does not know.
        """
        try:
            record = json.loads(content)
            found = record["format_version"]
            if found != FORMAT_VERSION:
                raise DataError(
                    f"manifest has format {found}, this Forebay reads format {FORMAT_VERSION}",
                    place=place,
                    hint="Use the Forebay that pushed this version, or a newer one.",
                )
            return cls._from_record(record)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise DataError(f"not a readable manifest: {problem}", place=place, hint="Push the model again.") from error

    @classmethod
    def _from_record(cls, record: Mapping[str, Any]) -> Manifest:
        pushed_by = record["pushed_by"]
        if pushed_by not in get_args(PushedBy):
            raise ValueError(f"pushed_by is {pushed_by!r}")
        provenance = {
            field.name: record[field.name] for field in dataclasses.fields(Provenance) if field.name in record
        }
        missing = {field.name for field in dataclasses.fields(Provenance)} - {"worst_class", *provenance}
        if missing:
            raise KeyError(min(missing))
        provenance["gates"] = tuple(provenance["gates"])
        return cls(
            project=record["project"],
            model=record["model"],
            version=int(record["version"]),
            pushed_at=record["pushed_at"],
            pushed_by=pushed_by,
            files={path: FileRecord(**entry) for path, entry in record["files"].items()},
            provenance=Provenance(**provenance),
            rollback=Rollback(**record["rollback"]) if record["rollback"] else None,
        )


def model_digest(files: Mapping[str, FileRecord]) -> str:
    """Returns one hex digest of every file outside assets.extra, by path and content."""
    served = {path: record.sha256 for path, record in files.items() if not path.startswith(f"{EXTRA_DIRECTORY}/")}
    return sha256_json(served)
