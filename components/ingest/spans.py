"""Patterns with {SPAN}, {VERSION} and date tokens: which span a run reads.

A span is a whole number, as in TFX: written out with {SPAN}, or days since 1970-01-01 with {YYYY} {MM} {DD}.
"""

from __future__ import annotations

import dataclasses
import datetime
import difflib
import glob
import os
import re

from core.errors import ConfigError, DataError

_TOKEN = re.compile(r"\{([^{}]*)\}")
_KNOWN = {"SPAN": r"\d+", "VERSION": r"\d+", "YYYY": r"\d{4}", "MM": r"\d{2}", "DD": r"\d{2}"}
_DATE_TOKENS = ("YYYY", "MM", "DD")
_EPOCH = datetime.date(1970, 1, 1)


@dataclasses.dataclass(frozen=True)
class Choice:
    """The paths that a pattern means, before folders are opened.

    Attributes:
        paths: Existing paths, sorted.
        span: Chosen span; None when the pattern has none.
        version: Chosen version; None when the pattern has none.
        is_glob: True when the names were found by wildcard and not written out.
    """

    paths: tuple[str, ...]
    span: int | None
    version: int | None
    is_glob: bool


@dataclasses.dataclass(frozen=True)
class _Match:
    path: str
    span: int | None
    version: int | None
    span_text: str
    version_text: str


def choose(pattern: str, *, run_date: datetime.date | None) -> Choice:
    """Returns the paths of the span and version that this run reads.

    Without a run date the newest {SPAN} is taken; with one, only the span of that day. The newest {VERSION}
    of the span is taken. A newest one whose folder has nothing that fits is refused: an older one never stands in.

    Raises:
        ConfigError: An unknown token, {SPAN} beside date tokens, or date tokens without a run date.
        DataError: Nothing matches, nothing matches that day or in the newest folder, or a number is written twice.
    """
    tokens = _tokens(pattern)
    if not tokens:
        return _plain(pattern)
    dated = [token for token in tokens if token in _DATE_TOKENS]
    if dated and run_date is None:
        raise ConfigError(
            f"data.path has {{{dated[0]}}} but the run has no date",
            place="run.date",
            hint="give the day: --set run.date=YYYY-MM-DD",
        )
    matches = _matches(pattern)
    if not matches:
        raise DataError("no file or folder matches data.path", place=pattern)
    if dated or "SPAN" in tokens:
        matches = _of_span(matches, pattern, run_date, by_date=bool(dated))
    if "SPAN" in tokens and run_date is None:
        unfilled = [folder for folder in _folders(pattern, "SPAN") if (folder.span or 0) > (matches[0].span or 0)]
        _refuse_unfilled("span", unfilled, pattern)
    if "VERSION" in tokens:
        matches = _of_newest_version(matches, pattern)
    first = matches[0]
    return Choice(tuple(sorted(match.path for match in matches)), first.span, first.version, is_glob=True)


def span_of_date(day: datetime.date) -> int:
    """Returns TFX's span number of a day: days since 1970-01-01."""
    return (day - _EPOCH).days


def _plain(pattern: str) -> Choice:
    if os.path.exists(pattern):
        return Choice((pattern,), None, None, is_glob=False)
    found = tuple(sorted(glob.glob(pattern, recursive=True))) if glob.has_magic(pattern) else ()
    if not found:
        raise DataError("there is no such file or folder", place=pattern, hint="check data.path")
    return Choice(found, None, None, is_glob=True)


def _tokens(pattern: str) -> list[str]:
    tokens = _TOKEN.findall(pattern)
    for token in tokens:
        if token not in _KNOWN:
            near = difflib.get_close_matches(token.upper(), _KNOWN, n=1)
            hint = f"did you mean {{{near[0]}}}?" if near else f"known: {', '.join(f'{{{t}}}' for t in _KNOWN)}"
            raise ConfigError(f"unknown token {{{token}}}", place="data.path", hint=hint)
    dated = set(tokens) & set(_DATE_TOKENS)
    if dated and "SPAN" in tokens:
        raise ConfigError("{SPAN} and date tokens both name the span", place="data.path", hint="keep one of them")
    if dated and dated != set(_DATE_TOKENS):
        missing = ", ".join(f"{{{token}}}" for token in _DATE_TOKENS if token not in dated)
        raise ConfigError(f"a dated path needs all of {{YYYY}} {{MM}} {{DD}}; it lacks {missing}", place="data.path")
    return tokens


def _matches(pattern: str) -> list[_Match]:
    """Returns every existing path that fits the pattern, with its numbers."""
    wildcard = _TOKEN.sub("*", pattern)
    expression = re.compile(_regex(pattern))
    found = []
    for path in sorted(glob.glob(wildcard, recursive=True)):
        match = expression.fullmatch(path)
        if match is None:
            continue
        values = match.groupdict()
        version = int(values["VERSION"]) if values.get("VERSION") else None
        if values.get("YYYY"):
            try:
                day = datetime.date(int(values["YYYY"]), int(values["MM"]), int(values["DD"]))
            except ValueError:
                continue
            found.append(_Match(path, span_of_date(day), version, day.isoformat(), values.get("VERSION") or ""))
        else:
            span = values.get("SPAN")
            number = int(span) if span else None
            found.append(_Match(path, number, version, span or "", values.get("VERSION") or ""))
    return found


def _regex(pattern: str) -> str:
    """Returns the regular expression of a pattern: tokens are named groups, `*` and `?` stay wildcards."""
    parts: list[str] = []
    seen: set[str] = set()
    position = 0
    for token in _TOKEN.finditer(pattern):
        parts.append(_glob_to_regex(pattern[position : token.start()]))
        name = token.group(1)
        # A token that occurs twice must have the same value in both places.
        parts.append(f"(?P={name})" if name in seen else f"(?P<{name}>{_KNOWN[name]})")
        seen.add(name)
        position = token.end()
    parts.append(_glob_to_regex(pattern[position:]))
    return "".join(parts)


def _glob_to_regex(text: str) -> str:
    pieces = re.split(r"(\*\*/|\*|\?|\[[^\]]+\])", text)
    kinds = {"**/": r"(?:.*/)?", "*": r"[^/]*", "?": r"[^/]"}
    return "".join(
        kinds.get(p) or (p.replace("[!", "[^") if re.fullmatch(r"\[[^\]]+\]", p) else re.escape(p)) for p in pieces
    )


def _of_span(matches: list[_Match], pattern: str, run_date: datetime.date | None, *, by_date: bool) -> list[_Match]:
    newest = max(matches, key=lambda match: match.span or 0)
    if run_date is None:
        wanted = newest.span
    elif not by_date and (
        any(match.span_text == run_date.strftime("%Y%m%d") for match in matches)
        or all(_looks_like_day(match.span_text) for match in matches)
    ):
        # A stray number beside folders named by day does not turn them into days since 1970.
        wanted = int(run_date.strftime("%Y%m%d"))
    else:
        wanted = span_of_date(run_date)
    chosen = [match for match in matches if match.span == wanted]
    if not chosen:
        named = f"{run_date}" if by_date else f"{run_date} (span {wanted})"
        raise DataError(
            f"no data for {named}; newest is {newest.span_text}",
            place=pattern,
            hint="wait for the data, or name another day with --set run.date=YYYY-MM-DD",
        )
    _refuse_twice(f"span {wanted}", {match.span_text for match in chosen}, pattern)
    return chosen


def _of_newest_version(matches: list[_Match], pattern: str) -> list[_Match]:
    newest = max(match.version or 0 for match in matches)
    chosen = [match for match in matches if match.version == newest]
    _refuse_twice(f"version {newest}", {match.version_text for match in chosen}, pattern)
    folders = [folder for folder in _folders(pattern, "VERSION") if folder.span == chosen[0].span]
    _refuse_unfilled("version", [folder for folder in folders if (folder.version or 0) > newest], pattern)
    return chosen


def _refuse_twice(what: str, texts: set[str], pattern: str) -> None:
    if len(texts) > 1:
        first, second, *_ = sorted(texts)
        raise DataError(
            f"{what} is there more than once: written {first} and {second}", place=pattern, hint="keep one of them"
        )


def _folders(pattern: str, token: str) -> list[_Match]:
    """Returns the folders that fit a pattern down to the part that holds a token; none when that is the last part."""
    head, _, tail = pattern.partition(f"{{{token}}}")
    rest, _, below = tail.partition("/")
    return [match for match in _matches(f"{head}{{{token}}}{rest}") if os.path.isdir(match.path)] if below else []


def _refuse_unfilled(what: str, folders: list[_Match], pattern: str) -> None:
    """Refuses folders that are newer than the one with data."""
    if folders:
        newest = max(folders, key=lambda folder: (folder.span or 0, folder.version or 0))
        raise DataError(
            f"the newest {what} has no file that fits {os.path.basename(pattern)}",
            place=newest.path,
            hint="wait for its files, or remove the folder to read the one before",
        )


def _looks_like_day(text: str) -> bool:
    if len(text) != 8:
        return False
    try:
        datetime.date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        return False
    return True
