"""Versions in an S3 bucket, where nothing can be renamed.

A version is uploaded under a hidden prefix and read back; only then is it copied, inside the server, to its number,
`saved_model.pb` last. A poller that lists prefixes can see the number during that short copy, but cannot load it: a
load without `saved_model.pb` fails, servers go on with the version before, and TensorFlow Serving tries again.
Numbers are claimed by a conditional write, so two pushers never copy to the same one.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import RetryableError
from core.manifest import MANIFEST_FILE, FileRecord
from serving.layout import READY_FILE, STAGING_PREFIX, Entry, is_hidden
from serving.s3_claims import Claims
from serving.s3_client import connect, explained, is_missing
from serving.store import ChooseVersion, MakeManifest
from serving.target import Target, split_s3

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_CHUNK_BYTES = 1 << 20
_DELETE_BATCH = 1000
_CLAIM_ATTEMPTS = 50


class S3Store:
    """All versions of one model under a prefix of a bucket."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.client = connect(target.s3_endpoint)
        self.bucket, prefix = split_s3(target.root)
        self.prefix = "/".join(part for part in (prefix, target.project, target.model) if part) + "/"
        self.claims = Claims(self)

    def entries(self) -> list[Entry]:
        """Returns the names that are not hidden, by name; an absent prefix has none."""
        below: dict[str, set[str]] = {}
        for path in self.keys(""):
            name, slash, rest = path.partition("/")
            if not is_hidden(name):
                below.setdefault(name, set()).update({rest} if slash else set())
        return [
            Entry(name, bool(paths), has_manifest=MANIFEST_FILE in paths, is_complete=READY_FILE in paths)
            for name, paths in sorted(below.items())
        ]

    def read(self, version: int, path: str) -> bytes | None:
        """Returns one small object of a version, or None when it is not there."""
        return self.get(f"{version}/{path}")

    def digests(self, version: int) -> dict[str, FileRecord]:
        """Returns a fresh digest of every object of a version, downloaded and hashed in constant memory."""
        paths = [path.partition("/")[2] for path in self.keys(f"{version}/")]
        return {path: self.record(f"{version}/{path}") for path in sorted(paths) if path != MANIFEST_FILE}

    @contextlib.contextmanager
    def fetch(self, version: int) -> Iterator[Path]:
        """Gives a temporary directory with a download of the version."""
        with tempfile.TemporaryDirectory(prefix="forebay-version-") as directory:
            for path in self.keys(f"{version}/"):
                local = Path(directory) / path.partition("/")[2]
                local.parent.mkdir(parents=True, exist_ok=True)
                with self.explained():
                    self.client.download_file(self.bucket, self.prefix + path, str(local))
            yield Path(directory)

    def check(self, needed_bytes: int, min_free_bytes: int) -> None:
        """Raises RemoteServiceError when the bucket cannot be listed. Space has no meaning here."""
        with self.explained():
            self.client.list_objects_v2(Bucket=self.bucket, Prefix=self.prefix, MaxKeys=1)

    @contextlib.contextmanager
    def stage(self) -> Iterator[S3Staging]:
        """Opens a hidden prefix beside the versions; it is gone at the end, committed or not."""
        self.claims.sweep()
        staging = f"{STAGING_PREFIX}{secrets.token_hex(6)}"
        self.claims.announce(staging)
        try:
            yield S3Staging(self, staging)
        finally:
            self.claims.withdraw(staging)

    def delete(self, versions: Iterable[int]) -> None:
        """Deletes versions, oldest first; of each, first what makes a server load it."""
        for version in sorted(versions):
            self.delete_keys([f"{version}/{READY_FILE}"])
            self.delete_keys(self.keys(f"{version}/"))

    def keys(self, below: str) -> list[str]:
        """Returns every key that starts so, relative to the model's prefix."""
        found = []
        with self.explained():
            for page in self.client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=self.prefix + below
            ):
                found += [item["Key"].removeprefix(self.prefix) for item in page.get("Contents", [])]
        return [key for key in found if key and not key.endswith("/")]

    def get(self, key: str) -> bytes | None:
        """Returns one small object, or None when it is not there."""
        from botocore.exceptions import ClientError

        with self.explained():
            try:
                return self.client.get_object(Bucket=self.bucket, Key=self.prefix + key)["Body"].read()
            except ClientError as error:
                if is_missing(error.response["Error"]["Code"]):
                    return None
                raise

    def record(self, key: str) -> FileRecord:
        """Returns the digest and size of one object, downloaded in constant memory."""
        digest, size_bytes = hashlib.sha256(), 0
        with self.explained():
            body = self.client.get_object(Bucket=self.bucket, Key=self.prefix + key)["Body"]
            for chunk in body.iter_chunks(_CHUNK_BYTES):
                digest.update(chunk)
                size_bytes += len(chunk)
        return FileRecord(digest.hexdigest(), size_bytes)

    def delete_keys(self, keys: Iterable[str]) -> None:
        """Deletes objects by their keys relative to the model's prefix; absent ones are no error."""
        listed = [self.prefix + key for key in keys]
        with self.explained():
            for start in range(0, len(listed), _DELETE_BATCH):
                batch = [{"Key": key} for key in listed[start : start + _DELETE_BATCH]]
                answer = self.client.delete_objects(Bucket=self.bucket, Delete={"Objects": batch, "Quiet": True})  # type: ignore[typeddict-item]
                for failure in answer.get("Errors", []):
                    raise RetryableError(
                        f"{failure.get('Key')} was not deleted: {failure.get('Code')}", place=self.target.location
                    )

    def explained(self) -> contextlib.AbstractContextManager[None]:
        """Returns the block that turns the client's errors into Forebay's."""
        return explained(self.target.location, self.target.s3_endpoint)


class S3Staging:
    """A version being uploaded under a hidden prefix."""

    def __init__(self, store: S3Store, name: str) -> None:
        self._store = store
        self._name = name
        self._paths: list[str] = []

    def add(self, path: str, source: Path) -> FileRecord:
        """Uploads one file and returns what arrived, read back."""
        key = self._key(path)
        with self._store.explained():
            self._store.client.upload_file(str(source), self._store.bucket, self._store.prefix + key)
        return self._store.record(key)

    def add_bytes(self, path: str, content: bytes) -> FileRecord:
        """Uploads one small file and returns what arrived, read back."""
        key = self._key(path)
        with self._store.explained():
            self._store.client.put_object(Bucket=self._store.bucket, Key=self._store.prefix + key, Body=content)
        return self._store.record(key)

    def commit(self, choose: ChooseVersion, manifest: MakeManifest) -> int:
        """Claims the next number and copies everything to it inside the server, what makes it loadable last."""
        version = self._claim(choose)
        self.add_bytes(MANIFEST_FILE, manifest(version))
        others = sorted(path for path in self._paths if path not in (READY_FILE, MANIFEST_FILE))
        try:
            for path in [*others, MANIFEST_FILE, READY_FILE]:
                self._copy(path, version)
        except BaseException:
            self._store.delete([version])
            raise
        return version

    def _claim(self, choose: ChooseVersion) -> int:
        for _ in range(_CLAIM_ATTEMPTS):
            version = choose([*self._store.entries(), *self._store.claims.entries()])
            if not self._store.claims.take(version, self._name):
                continue
            # The claim keeps others away from now on; one that was withdrawn a moment ago has left a version.
            if not self._store.keys(f"{version}/"):
                return version
        raise RetryableError(
            f"{_CLAIM_ATTEMPTS} version numbers in a row were taken by others",
            place=self._store.target.location,
            hint="Push again.",
        )

    def _copy(self, path: str, version: int) -> None:
        store = self._store
        with store.explained():
            store.client.copy(
                {"Bucket": store.bucket, "Key": f"{store.prefix}{self._name}/{path}"},
                store.bucket,
                f"{store.prefix}{version}/{path}",
            )

    def _key(self, path: str) -> str:
        self._paths.append(path)
        return f"{self._name}/{path}"


def find_models(root: str, endpoint: str | None) -> list[tuple[str, str]]:
    """Returns (project, model) for every second-level prefix under an `s3://` root."""
    client = connect(endpoint)
    bucket, prefix = split_s3(root)
    top = f"{prefix}/" if prefix else ""
    with explained(root, endpoint):
        return [
            (project, model)
            for project in _prefixes(client, bucket, top)
            for model in _prefixes(client, bucket, f"{top}{project}/")
        ]


def _prefixes(client: S3Client, bucket: str, below: str) -> list[str]:
    found = []
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=below, Delimiter="/"):
        found += [item["Prefix"].removeprefix(below).rstrip("/") for item in page.get("CommonPrefixes", [])]
    return [name for name in found if name and not is_hidden(name)]
