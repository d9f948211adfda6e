"""Version directories as TensorFlow Serving sees them, and the number that the next one gets."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from core.errors import EnvironmentProblem

# Without this file TensorFlow Serving loads nothing from a version; on object stores it is written last.
READY_FILE = "saved_model.pb"

# Everything of ours that is not a version starts so. No server reads such a name as a number.
STAGING_PREFIX = ".push-"
TRASH_PREFIX = ".trash-"

# A foreign version this far in the future is a clock that was set back, and is counted past.
# Anything later is a name that was never a clock (such as 20260101120000) and is refused.
CLOCK_SKEW_S = 86_400

_INT64_MAX = 2**63 - 1
_NUMBER = re.compile(r"\s*[+-]?[0-9]+\s*", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One name in a model's directory.

    Attributes:
        name: The name as it stands there.
        is_directory: Whether files can be below it.
        has_manifest: Whether Forebay pushed it.
        is_complete: Whether the file that makes a server load it is there.
    """

    name: str
    is_directory: bool = True
    has_manifest: bool = False
    is_complete: bool = True

    @property
    def number(self) -> int | None:
        """The version that TensorFlow Serving reads in the name; None when it reads none."""
        return served_number(self.name)

    @property
    def is_ours(self) -> bool:
        """True for a version that Forebay pushed: a directory with a manifest and a plain number for a name."""
        return self.is_directory and self.has_manifest and self.name == str(self.number)


def served_number(name: str) -> int | None:
    """Returns the version that TensorFlow Serving reads in a name, or None.

    It reads any int64: `001` is version 1, a file counts like a directory, and blanks around the digits do not
    matter. Negative numbers and numbers past int64 are no versions.
    """
    if not _NUMBER.fullmatch(name):
        return None
    number = int(name)
    return number if 0 <= number <= _INT64_MAX else None


def is_hidden(name: str) -> bool:
    """Returns whether a name is housekeeping of ours or of the file system."""
    return name.startswith(".")


def published(entries: Iterable[Entry]) -> list[int]:
    """Returns the versions that Forebay pushed and that a server can load, oldest first."""
    return sorted(int(entry.name) for entry in entries if entry.is_ours and entry.is_complete)


def newest(entries: Iterable[Entry]) -> int | None:
    """Returns the newest version that Forebay pushed and that a server can load, or None."""
    return max(published(entries), default=None)


def served(entries: Iterable[Entry]) -> int | None:
    """Returns the newest version that a server can load, pushed by Forebay or not, or None."""
    return max((entry.number for entry in entries if entry.number is not None and entry.is_complete), default=None)


def highest(entries: Iterable[Entry]) -> int | None:
    """Returns the highest number that servers read in any name, pushed by Forebay or not, or None."""
    return max((entry.number for entry in entries if entry.number is not None), default=None)


def next_version(entries: Iterable[Entry], now_s: float, place: str) -> int:
    """Returns the number of the next version: UTC seconds, or one past the newest when that is not larger.

    Args:
        entries: What the model's directory holds now.
        now_s: Seconds since the epoch.
        place: The directory, for the error.

    Raises:
        EnvironmentProblem: A name that Forebay did not push is so high that a server would serve it for ever.
    """
    listed = list(entries)
    clock = int(now_s)
    blockers = [
        entry
        for entry in listed
        if entry.number is not None and not entry.is_ours and entry.number > clock + CLOCK_SKEW_S
    ]
    ours = max((int(entry.name) for entry in listed if entry.is_ours), default=0)
    blockers = [entry for entry in blockers if (entry.number or 0) > ours]
    if blockers:
        names = ", ".join(repr(entry.name) for entry in sorted(blockers, key=lambda entry: -(entry.number or 0))[:3])
        raise EnvironmentProblem(
            f"a server would never serve the new version {max(clock, ours + 1)}: it takes {names} for a newer one",
            place=place,
            hint="Forebay did not push that name; move it out of this directory, then push again.",
        )
    return max(clock, (highest(listed) or 0) + 1)


def odd_names(entries: Iterable[Entry]) -> list[str]:
    """Returns one warning for each name that a server reads otherwise than a person would."""
    warnings = []
    for entry in entries:
        number = entry.number
        if number is None:
            warnings.append(f"{entry.name!r} is no version: no server will ever load it")
        elif not entry.is_directory:
            warnings.append(
                f"{entry.name!r} is a file: TensorFlow Serving tries to load it as version {number} and fails"
            )
        elif entry.name != str(number):
            warnings.append(f"{entry.name!r} is version {number} to TensorFlow Serving; Forebay leaves it alone")
        elif not entry.is_complete:
            warnings.append(f"{entry.name!r} has no {READY_FILE}: TensorFlow Serving tries to load it and fails")
        elif not entry.has_manifest:
            warnings.append(
                f"{entry.name!r} was not pushed by Forebay: it is never deleted and never a rollback target"
            )
    return warnings
