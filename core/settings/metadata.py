"""The setting `run.metadata`: where ML Metadata keeps its records."""

from __future__ import annotations

import dataclasses
import os
import urllib.parse

SQLITE = "sqlite"
PASSWORD_VARIABLE = "FOREBAY_MYSQL_PASSWORD"  # noqa: S105  The name of a variable, not a password.
_PORT = 3306
_FORMS = f"sqlite or mysql://USER@HOST:PORT/DATABASE, with the password in {PASSWORD_VARIABLE}"


@dataclasses.dataclass(frozen=True)
class MysqlAddress:
    """A MySQL or MariaDB database."""

    host: str
    port: int
    user: str
    database: str

    @property
    def password(self) -> str:
        """The password in the environment; empty when there is none."""
        return os.environ.get(PASSWORD_VARIABLE, "")

    def __str__(self) -> str:
        """Returns the address without its password."""
        return f"mysql://{self.user}@{self.host}:{self.port}/{self.database}"


def parse(metadata: str) -> MysqlAddress | None:
    """Returns the database that the setting names; None for SQLite.

    Raises:
        ValueError: The value is of neither form. The message shows both and holds no password.
    """
    if metadata == SQLITE:
        return None
    try:
        url = urllib.parse.urlsplit(metadata)
        port = url.port or _PORT
    except ValueError:
        raise ValueError(f"not a metadata store: use {_FORMS}") from None
    database = url.path.strip("/")
    if url.password:
        raise ValueError(f"a password does not belong into settings: use {_FORMS}")
    if url.scheme != "mysql" or not url.hostname or not url.username or not database:
        raise ValueError(f"not a metadata store: use {_FORMS}")
    return MysqlAddress(url.hostname, port, urllib.parse.unquote(url.username), database)
