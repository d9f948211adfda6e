"""Servers that tests of several tiers share."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A MariaDB server of our own on a loopback port, as a `run.metadata` URL; the password is `pass word`."""
    server = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin")
    installer = shutil.which("mariadb-install-db")
    client = shutil.which("mariadb")
    if not (server and installer and client):
        pytest.skip("no MariaDB here: apt-get install mariadb-server runs this test")
    base = tmp_path_factory.mktemp("mariadb")
    data, sock, port = base / "data", base / "s", _free_port()
    as_user = [f"--user={os.environ.get('USER') or 'root'}"] if os.geteuid() == 0 else []
    subprocess.run(
        [installer, f"--datadir={data}", "--auth-root-authentication-method=normal", *as_user],
        check=True,
        capture_output=True,
    )
    command = [
        server,
        "--no-defaults",
        f"--datadir={data}",
        f"--socket={sock}",
        f"--port={port}",
        "--bind-address=127.0.0.1",
    ]
    process = subprocess.Popen(
        [*command, f"--pid-file={base / 'pid'}", *as_user], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    account = "'bay'@'127.0.0.1'"
    setup = f"CREATE DATABASE runs; CREATE USER {account} IDENTIFIED BY 'pass word'; GRANT ALL ON runs.* TO {account};"
    try:
        deadline = time.monotonic() + 60
        while True:
            done = subprocess.run([client, f"--socket={sock}", "-uroot", "-e", setup], capture_output=True, check=False)
            if done.returncode == 0:
                break
            assert time.monotonic() < deadline, done.stderr
            time.sleep(0.3)
        yield f"mysql://bay@127.0.0.1:{port}/runs"
    finally:
        process.terminate()
        process.wait(timeout=60)
