"""Whether the ML Metadata store can be reached."""

from __future__ import annotations

import os
import re
import urllib.parse
from pathlib import Path

from pipeline.doctor.finding import Finding, Level
from pipeline.doctor.machine import existing_parent

PASSWORD_VARIABLE = "FOREBAY_MYSQL_PASSWORD"  # noqa: S105 - the name of a variable, not a password
_AREA = "metadata"
_NAME = "run.metadata"
_TIMEOUT_S = 2
_MYSQL_PORT = 3306


def check_metadata(metadata: str, run_root: str) -> Finding:
    """Returns whether a run could open its metadata store.

    Args:
        metadata: `sqlite`, or `mysql://USER@HOST:PORT/DATABASE`.
        run_root: The folder that holds the SQLite file.
    """
    if metadata != "sqlite":
        return _check_mysql(metadata)
    folder = existing_parent(Path(run_root))
    if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
        return Finding(_AREA, _NAME, Level.OK, f"sqlite, {folder} can be written", "reachable")
    fix = "set run.root to a folder that this user may write"
    return Finding(_AREA, _NAME, Level.BLOCKER, f"sqlite, but {folder} cannot be written", "reachable", fix)


def _check_mysql(url: str) -> Finding:
    """Logs in, which finds a wrong host, port, user, password and database alike."""
    import pymysql

    try:
        parts = urllib.parse.urlsplit(url)
        host, port, user, database = parts.hostname, parts.port or _MYSQL_PORT, parts.username, parts.path.lstrip("/")
    except ValueError:
        host = user = database = None
        port = _MYSQL_PORT
    if not (host and user and database):
        fix = "write run.metadata as mysql://USER@HOST:PORT/DATABASE"
        return Finding(_AREA, _NAME, Level.BLOCKER, f"{_without_password(url)} is not complete", "reachable", fix)
    where = f"mysql {user}@{host}:{port}/{database}"
    try:
        pymysql.connect(
            host=host,
            port=port,
            user=urllib.parse.unquote(user),
            password=os.environ.get(PASSWORD_VARIABLE, ""),
            database=database,
            connect_timeout=_TIMEOUT_S,
            read_timeout=_TIMEOUT_S,
        ).close()
    except (pymysql.err.MySQLError, OSError, RuntimeError) as error:
        code = error.args[0] if error.args else 0
        return Finding(
            _AREA, _NAME, Level.BLOCKER, f"{where}: {_reason(code, error)}", "reachable", _fix(code, host, port)
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


def _without_password(url: str) -> str:
    return re.sub(r"(://[^:@/]*):[^@/]*@", r"\1@", url)
