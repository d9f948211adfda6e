"""Open the store of a target, and find the models under a root."""

from __future__ import annotations

import os
from pathlib import Path

from serving import local_disk
from serving.layout import is_hidden
from serving.store import Store
from serving.target import Target, is_s3


def open_store(target: Target) -> Store:
    """Returns the store of one model: a directory, or a prefix in a bucket.

    Raises:
        EnvironmentProblem: The root is in S3 and boto3 is not installed.
    """
    if target.is_s3:
        from serving.s3_store import S3Store

        return S3Store(target)
    from serving.local_store import LocalStore

    return LocalStore(target)


def find_targets(root: str, s3_endpoint: str | None = None) -> list[Target]:
    """Returns every `<project>/<model>` under a serving root, by name; an absent root has none.

    Raises:
        EnvironmentProblem: The root cannot be read, or boto3 is not installed.
        RemoteServiceError: The object store refused or did not answer.
    """
    if is_s3(root):
        from serving.s3_store import find_models

        pairs = find_models(root, s3_endpoint)
    else:
        pairs = [(project, model) for project in _folders(Path(root)) for model in _folders(Path(root) / project)]
    return [Target(root, project, model, s3_endpoint) for project, model in sorted(pairs)]


def _folders(directory: Path) -> list[str]:
    try:
        with os.scandir(directory) as found:
            return [item.name for item in found if item.is_dir() and not is_hidden(item.name)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise local_disk.explain(error, directory) from error
