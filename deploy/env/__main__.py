"""`python3 -m deploy.env`: brings `.venv` up to date with requirements/lock.txt. Needs python3 3.8 or later.

Python 3.10 and uv are found or fetched, packages are installed by hash with their bytecode, the project itself is
installed editable. The screen shows a few lines; .tools/env.log has everything.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from core.errors import EXIT_INTERRUPTED, EnvironmentProblem
from deploy.env import interpreter, tools
from deploy.env.command import Failed, environment, run, run_or_explain
from deploy.env.problem import check_disk, check_platform, explain, is_build_failure
from deploy.env.stamp import Stamp, python_version

# Relative to the clone, where all commands run: older versions of uv cut some arguments at spaces.
_LOCK = "requirements/lock.txt"
# The locked packages that no index has a wheel for and that hold C++.
_COMPILED_HERE = ("pyfarmhash",)


class Installation:
    """One clone's environment and the files that belong to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.python = str(self.venv / "bin" / "python")
        self.log = root / ".tools" / "env.log"
        self.stamp = Stamp(root, self.venv)

    def bring_up_to_date(self) -> bool:
        """Makes the environment what the lock says.

        Returns:
            False when it already was.

        Raises:
            EnvironmentProblem: The machine lacks something; one line says what.
        """
        if self.stamp.is_current():
            return False
        self.log.write_text("", encoding="utf-8")
        uv = tools.find_uv(self.root, self.log)
        if self.stamp.must_start_over():
            check_disk(self.root)
            found = interpreter.find(uv, environment())
            print(f"env: Python {found.version} from {found.path}", flush=True)
            self._uv(uv, "making .venv", ["venv", "--quiet", "--clear", "--python", found.path, str(self.venv)])
        self.stamp.begin()
        self._install_compiled(uv)
        target = ["--python", self.python]
        pins = ["--require-hashes", "--build-constraints", _LOCK, _LOCK]
        self._uv(uv, "installing packages", ["pip", "sync", *target, "--compile-bytecode", *pins])
        # Offline: setuptools is in the lock, so nothing has to be fetched for our own package.
        own = ["--offline", "--no-deps", "--no-build-isolation", "--editable", str(self.root)]
        self._uv(uv, "installing forebay itself", ["pip", "install", "--quiet", *target, *own])
        self._check()
        self.stamp.finish()
        return True

    def _uv(self, uv: str, what: str, arguments: list[str]) -> None:
        run_or_explain(what, [uv, *arguments], self.log, cwd=self.root)

    def _install_compiled(self, uv: str) -> None:
        """Installs the packages that have to be compiled, with this machine's compiler or else a fetched one."""
        pins = self.log.with_name("compiled.txt")
        pins.write_text(_blocks((self.root / _LOCK).read_text(encoding="utf-8"), _COMPILED_HERE), encoding="utf-8")
        options = ["--quiet", "--python", self.python, "--no-deps", "--require-hashes", "--build-constraints", _LOCK]
        arguments = [uv, "pip", "install", *options, "-r", str(pins.relative_to(self.root))]
        compiler = tools.find_compiler()
        try:
            run(arguments, self.log, cwd=self.root, variables={**environment(), **(compiler or {})})
            return
        except Failed as failure:
            if not is_build_failure(failure.output):
                raise explain("installing packages", failure.output, self.log) from failure
        fetched = tools.install_compiler(self.root, uv, self.python, self.log)
        run_or_explain(
            "compiling a package", arguments, self.log, cwd=self.root, variables={**environment(), **fetched}
        )

    def _check(self) -> None:
        """Loads what was compiled here and asks the command for its version, before anything is called done."""
        loads = [self.python, "-I", "-c", "import farmhash; farmhash.fingerprint64('forebay')"]
        answers = [str(self.venv / "bin" / "forebay"), "--version"]
        for arguments in (loads, answers):
            done = subprocess.run(arguments, capture_output=True, text=True, env=environment(), check=False)
            if done.returncode != 0:
                raise explain("checking the new environment", done.stdout + done.stderr, self.log)


def _blocks(lock: str, names: tuple[str, ...]) -> str:
    """Returns the lines of a lock file that pin the named packages, hashes included."""
    found = [re.search(rf"^{re.escape(name)}==.*?(?=^\S|\Z)", lock, re.MULTILINE | re.DOTALL) for name in names]
    return "".join(match.group(0) for match in found if match)


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Lets one installation at a time work on a clone; a second one waits for the first."""
    folder = root / ".tools"
    folder.mkdir(exist_ok=True)
    with open(folder / "env.lock", "w", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("env: waiting for another make env in this clone", flush=True)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def main(root: Path | None = None) -> int:
    """Brings the environment up to date and returns the exit code of the process."""
    installation = Installation(root or Path(__file__).resolve().parents[2])
    started = time.monotonic()
    try:
        check_platform()
        with _alone(installation.root):
            changed = installation.bring_up_to_date()
    except EnvironmentProblem as problem:
        print(f"env: {problem}", file=sys.stderr)
        return problem.exit_code
    except OSError as error:
        print(f"env: {error.filename or installation.root}: {error.strerror or error}", file=sys.stderr)
        return EnvironmentProblem.exit_code
    except KeyboardInterrupt:
        print("env: interrupted; run make env again to finish", file=sys.stderr)
        return EXIT_INTERRUPTED
    if changed:
        elapsed = time.monotonic() - started
        print(f"env: .venv is ready, Python {python_version(installation.venv)}, {elapsed:.0f} s", flush=True)
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
