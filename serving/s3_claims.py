"""Who is pushing to a bucket, and which number is whose. An object store has no locks that die with a process."""

from __future__ import annotations

import datetime
import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from serving.layout import READY_FILE, STAGING_PREFIX, Entry
from serving.s3_client import lost_race

if TYPE_CHECKING:
    from serving.s3_store import S3Store

_CLAIM_PREFIX = ".claim-"
_OWNER = ".owner.json"
# A push from another host that has shown no life for this long is dead.
STALE_AFTER = datetime.timedelta(hours=24)


class Claims:
    """The pushes under way to one model.

    Each has a hidden prefix with an owner object (host, process, its start time), and from the moment it knows its
    number a claim object for that number, written only if absent.
    """

    def __init__(self, store: S3Store) -> None:
        self._store = store

    def announce(self, staging: str) -> None:
        """Writes who pushes under a hidden prefix."""
        owner = {"host": socket.gethostname(), "pid": os.getpid(), "started": _start_ticks(os.getpid())}
        with self._store.explained():
            self._store.client.put_object(
                Bucket=self._store.bucket,
                Key=f"{self._store.prefix}{staging}/{_OWNER}",
                Body=json.dumps(owner).encode(),
            )

    def take(self, version: int, staging: str) -> bool:
        """Claims a number for a push; returns False when another push has it."""
        from botocore.exceptions import ClientError

        key = f"{self._store.prefix}{_CLAIM_PREFIX}{version}"
        with self._store.explained():
            try:
                self._store.client.put_object(
                    Bucket=self._store.bucket, Key=key, Body=staging.encode(), IfNoneMatch="*"
                )
            except ClientError as error:
                if lost_race(error.response["Error"]["Code"]):
                    return False
                raise
        return True

    def entries(self) -> list[Entry]:
        """Returns the claimed numbers as incomplete versions of ours, so that the next number is past them."""
        keys = self._store.keys(_CLAIM_PREFIX)
        return [Entry(key.removeprefix(_CLAIM_PREFIX), has_manifest=True, is_complete=False) for key in keys]

    def withdraw(self, staging: str) -> None:
        """Deletes a push's claims, then its hidden prefix, the owner object last."""
        self._store.delete_keys(self._claims_of(staging))
        keys = self._store.keys(f"{staging}/")
        owner = f"{staging}/{_OWNER}"
        self._store.delete_keys([key for key in keys if key != owner])
        self._store.delete_keys([owner])

    def sweep(self) -> None:
        """Deletes what dead pushes left: half-copied versions first, then claims, then hidden prefixes."""
        for staging in sorted({key.partition("/")[0] for key in self._store.keys(STAGING_PREFIX)}):
            if not self._is_dead(staging):
                continue
            for claim in self._claims_of(staging):
                version = claim.removeprefix(_CLAIM_PREFIX)
                keys = self._store.keys(f"{version}/")
                if f"{version}/{READY_FILE}" not in keys:
                    self._store.delete_keys(keys)
            self.withdraw(staging)

    def _claims_of(self, staging: str) -> list[str]:
        return [key for key in self._store.keys(_CLAIM_PREFIX) if self._store.get(key) == staging.encode()]

    def _is_dead(self, staging: str) -> bool:
        content = self._store.get(f"{staging}/{_OWNER}")
        if content is not None:
            owner: dict[str, Any] = json.loads(content)
            if owner.get("host") == socket.gethostname():
                return owner.get("started") != _start_ticks(int(owner["pid"]))
        return self._age(staging) > STALE_AFTER

    def _age(self, staging: str) -> datetime.timedelta:
        """Returns how long ago the last object was written under a hidden prefix, by the server's clock."""
        with self._store.explained():
            answer = self._store.client.list_objects_v2(
                Bucket=self._store.bucket, Prefix=f"{self._store.prefix}{staging}/"
            )
        server_now = answer["ResponseMetadata"]["HTTPHeaders"].get("date", "")
        newest = max((item["LastModified"] for item in answer.get("Contents", [])), default=None)
        if newest is None or not server_now:
            return datetime.timedelta(0)
        return (
            datetime.datetime.strptime(server_now, "%a, %d %b %Y %H:%M:%S %Z").replace(tzinfo=datetime.timezone.utc)
            - newest
        )


def _start_ticks(pid: int) -> int | None:
    """Returns when a process of this host started, in clock ticks since boot; None when there is none such."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold blanks; the start time is the 20th field after it.
    return int(text.rpartition(")")[2].split()[19])
