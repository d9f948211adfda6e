"""The exception tree of Forebay and the exit code that each branch stands for.

    ForebayError
    ├── UsageError            2    the command line is wrong
    ├── ConfigError           3    a setting is unknown, ill-typed or impossible
    ├── RefusedError          4    a gate or a data check said no
    │   ├── DataError              the input data cannot be used as it is
    │   └── GateRefusedError       a gate measured something outside its bound
    ├── EnvironmentProblem    5    this machine lacks something
    │   └── LockedError            another run owns the pipeline root
    ├── NodeFailedError       1    code that a node calls raised something of its own
    ├── RemoteServiceError    6    a server that we call said no or nothing
    └── RetryableError        7    infrastructure failed; the same command may succeed

Exit code 130 is an interrupt and has no class: it is Python's KeyboardInterrupt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

EXIT_DONE = 0
EXIT_UNEXPECTED = 1
EXIT_USAGE = 2
EXIT_CONFIG = 3
EXIT_REFUSED = 4
EXIT_ENVIRONMENT = 5
EXIT_REMOTE = 6
EXIT_RETRYABLE = 7
EXIT_INTERRUPTED = 130


class ForebayError(Exception):
    """An error that a user can act on.

    Attributes:
        headline: What went wrong, one sentence without a final newline.
        place: Where: `file`, `file:line`, or `file:line key.path`; empty when there is none.
        hint: What to do about it; empty when there is nothing to add.
        exit_code: The process exit code that an orchestrator can act on.
    """

    exit_code: int = EXIT_UNEXPECTED

    def __init__(self, headline: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(headline, place, hint)
        self.headline = headline
        self.place = place
        self.hint = hint

    def __str__(self) -> str:
        """Returns the whole error on one line: `place: headline. Hint.`."""
        text = f"{self.place}: {self.headline}" if self.place else self.headline
        if self.hint:
            text = f"{text.rstrip('.')}{'; ' if self.hint[0].islower() else '. '}{self.hint}"
        return " ".join(text.split())

    def to_dict(self) -> dict[str, Any]:
        """Returns the stable machine form that `--output json` prints."""
        return {
            "error": type(self).__name__,
            "message": str(self),
            "headline": self.headline,
            "place": self.place,
            "hint": self.hint,
            "exit_code": self.exit_code,
        }


class UsageError(ForebayError):
    """The command line is wrong."""

    exit_code = EXIT_USAGE


class ConfigError(ForebayError):
    """A setting is unknown, ill-typed or impossible.

    Attributes:
        problems: Machine form of every problem found, this one first; empty when there is only this one.
    """

    exit_code = EXIT_CONFIG

    def __init__(
        self, headline: str, *, place: str = "", hint: str = "", problems: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        super().__init__(headline, place=place, hint=hint)
        self.problems = [dict(problem) for problem in problems]

    def to_dict(self) -> dict[str, Any]:
        """Returns the stable machine form, with all problems when there are several."""
        return {**super().to_dict(), **({"problems": self.problems} if self.problems else {})}


class RefusedError(ForebayError):
    """A check said no: the run stops, nothing is pushed."""

    exit_code = EXIT_REFUSED


class DataError(RefusedError):
    """The input data cannot be used as it is."""


class GateRefusedError(RefusedError):
    """A gate measured something outside its bound."""


class EnvironmentProblem(ForebayError):
    """This machine lacks something, or something in it is in the way."""

    exit_code = EXIT_ENVIRONMENT


class LockedError(EnvironmentProblem):
    """Another run owns the pipeline root."""


class NodeFailedError(ForebayError):
    """Code that a node calls, most often the user's own, raised something that is not ours."""


class RemoteServiceError(ForebayError):
    """A server that we call refused or did not answer."""

    exit_code = EXIT_REMOTE


class RetryableError(ForebayError):
    """Infrastructure failed; the same command may succeed later."""

    exit_code = EXIT_RETRYABLE
