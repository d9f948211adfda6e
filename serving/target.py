"""Where a model is served from: `<root>/<project>/<model>` on a local disk or in an S3 bucket."""

from __future__ import annotations

import dataclasses
import os

from core.errors import ConfigError

_S3_SCHEME = "s3://"


@dataclasses.dataclass(frozen=True)
class Target:
    """One model's place under a serving root.

    Attributes:
        root: Local directory or `s3://bucket[/prefix]`.
        project: First level under the root.
        model: Second level; the name that the model is served under.
        s3_endpoint: URL of an S3-compatible server; None for the client's own default.
    """

    root: str
    project: str
    model: str
    s3_endpoint: str | None = None

    def __post_init__(self) -> None:
        for level in (self.project, self.model):
            if not level or "/" in level or level.startswith("."):
                raise ConfigError(f"{level!r} cannot be a directory name under the serving root", place=self.root)

    @classmethod
    def lasting(cls, root: str, project: str, model: str, s3_endpoint: str | None = None) -> Target:
        """Returns the target of a root as it stands in the settings.

        A local root is made absolute: the answer outlives this process and its working directory.

        Raises:
            ConfigError: The root or a name cannot be one.
        """
        return cls(root if is_s3(root) else os.path.abspath(root), project, model, s3_endpoint)

    @property
    def is_s3(self) -> bool:
        """Whether the root is in an object store."""
        return is_s3(self.root)

    @property
    def location(self) -> str:
        """The model's directory or URL, for paths and messages."""
        return f"{self.root.rstrip('/')}/{self.project}/{self.model}"

    def version_location(self, version: int) -> str:
        """Returns the directory or URL of one version."""
        return f"{self.location}/{version}"


def is_s3(root: str) -> bool:
    """Returns whether a serving root names an S3 bucket.

    Raises:
        ConfigError: Another scheme.
    """
    scheme, separator, _ = root.partition("://")
    if separator and scheme != "s3":
        raise ConfigError(
            f"{scheme}:// is no place that Forebay can push to",
            place="serving.root",
            hint="Use a local directory or s3://bucket/prefix.",
        )
    return bool(separator)


def split_s3(root: str) -> tuple[str, str]:
    """Returns (bucket, key prefix without slashes at its ends) of an `s3://` root.

    Raises:
        ConfigError: The bucket is missing.
    """
    bucket, _, prefix = root.removeprefix(_S3_SCHEME).partition("/")
    if not bucket:
        raise ConfigError(f"{root!r} names no bucket", place="serving.root", hint="Write s3://bucket/prefix.")
    return bucket, prefix.strip("/")
