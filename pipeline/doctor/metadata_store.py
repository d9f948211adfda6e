"""Whether the ML Metadata store can be reached."""

from __future__ import annotations

import os
from pathlib import Path

from core.settings.metadata import PASSWORD_VARIABLE, MysqlAddress, parse
from pipeline.doctor.finding import Finding, Level
from pipeline.doctor.machine import existing_parent

_AREA = "metadata"
_NAME = "run.metadata"
_TIMEOUT_S = 2


def check_metadata(metadata: str, run_root: str) -> Finding:
    """Returns whether a run could open its metadata store.

    Args:
        metadata: `sqlite`, or `mysql://USER@HOST:PORT/DATABASE`.
        run_root: The folder that holds the SQLite file.
    """
    try:
        address = parse(metadata)
    except ValueError as error:
        return Finding(
            _AREA,
            _NAME,
            Level.BLOCKER,
            str(error),
            "reachable",
            "write run.metadata as mysql://USER@HOST:PORT/DATABASE",
        )
    if address is not None:
        return _check_mysql(address)
    folder = existing_parent(Path(run_root))
    if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
        return Finding(_AREA, _NAME, Level.OK, f"sqlite, {folder} can be written", "reachable")
    fix = "set run.root to a folder that this user may write"
    return Finding(_AREA, _NAME, Level.BLOCKER, f"sqlite, but {folder} cannot be written", "reachable", fix)


def _check_mysql(address: MysqlAddress) -> Finding:
    """Logs in, which finds a wrong host, port, user, password and database alike."""
    import pymysql

    where = str(address)
    try:
        pymysql.connect(
            host=address.host,
            port=address.port,
            user=address.user,
            password=address.password,
            database=address.database,
            connect_timeout=_TIMEOUT_S,
            read_timeout=_TIMEOUT_S,
        ).close()
    except (pymysql.err.MySQLError, OSError, RuntimeError) as error:
        code = error.args[0] if error.args else 0
        return Finding(
            _AREA,
            _NAME,
            Level.BLOCKER,
            f"{where}: {_reason(code, error)}",
            "reachable",
            _fix(code, address.host, address.port),
        )
    return Finding(_AREA, _NAME, Level.OK, where, "reachable")


def _reason(code: object, error: Exception) -> str:
    reasons = {
        1044: "no right to this database",
        1045: "wrong user or password",
        1049: "no such database",
        2003: "no answer",
    }
    if isinstance(code, int) and code in reasons:
        return reasons[code]
    return " ".join(str(error.args[-1] if error.args else error).split())[:160]


def _fix(code: object, host: str, port: int) -> str:
    if code == 1049:
        return "create the database, empty: ML Metadata makes its tables"
    if code in (1044, 1045):
        return f"set {PASSWORD_VARIABLE}, and grant this user all rights on the database"
    return f"start the server at {host}:{port}, or set run.metadata=sqlite"
