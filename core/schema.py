"""The curated schema: a text proto that a person keeps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import ConfigError

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import schema_pb2

# What protobuf writes before its message: line, column.
_POSITION = re.compile(r"^\d+:(\d+ :)?\s*")


def read(path: Path) -> schema_pb2.Schema:
    """Returns the schema of a text-proto file.

    Raises:
        ConfigError: The file is not there, cannot be read or is not a schema; names the line.
    """
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    schema = schema_pb2.Schema()
    try:
        text_format.Parse(path.read_text(encoding="utf-8"), schema)
    except FileNotFoundError as error:
        hint = f"Paths are relative to {Path.cwd()}; `forebay schema infer` proposes one from the data."
        raise ConfigError("there is no schema file", place=str(path), hint=hint) from error
    except (OSError, UnicodeDecodeError) as error:
        hint = "It must be a text file in UTF-8 that you may read."
        raise ConfigError(f"the schema cannot be read: {error}", place=str(path), hint=hint) from error
    except text_format.ParseError as error:
        line = error.GetLine()
        place = f"{path}:{line}" if line else str(path)
        reason = _POSITION.sub("", str(error))
        raise ConfigError(f"not a schema: {reason}", place=place, hint="Mend the text proto.") from error
    return schema
