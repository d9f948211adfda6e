"""`forebay data` from the outside: what it prints, in both forms, and with which exit code."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.cli.main import run
from pipeline.datasets import catalog

pytestmark = pytest.mark.unit

NOWHERE = "http://127.0.0.1:1/archive.zip"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Yields the address of a server of the folder `web`, which holds the set `tiny` and a page."""
    web = tmp_path / "web"
    web.mkdir()
    with zipfile.ZipFile(web / "tiny.zip", "w") as archive:
        archive.writestr("x/hat/1.jpg", b"one")
    (web / "page.html").write_text("<html>sign in</html>", encoding="utf-8")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Keeps the test's output clean."""

    handler = functools.partial(Handler, directory=str(web))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()
        thread.join()


@pytest.fixture
def tiny(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts the set `tiny` in place of the catalog; returns the folder where its recipe looks for it."""
    line = f"hats/hat/1.jpg\0{hashlib.sha256(b'one').hexdigest()}\n"
    record = {
        "title": "1 photo of a hat",
        "licence": "CC0 1.0",
        "url": f"{server}/tiny.zip",
        "members": r"/(?P<class>[^/]+)/(?P<name>[^/]+\.jpg)$",
        "folders": {"hat": "hats/hat"},
        "files": 1,
        "content_sha256": hashlib.sha256(line.encode()).hexdigest(),
        "target": str(tmp_path / "input" / "tiny"),
    }
    sets = tmp_path / "sets"
    sets.mkdir()
    (sets / "tiny.yaml").write_text(json.dumps(record), encoding="utf-8")
    monkeypatch.setattr(catalog, "find", functools.partial(catalog.find, directory=sets))
    return tmp_path / "input" / "tiny"


def test_list_says_of_each_set_what_it_is_and_where_it_goes(capsys: pytest.CaptureFixture[str]) -> None:
    """The shipped sets with title, licence and target, in both forms."""
    assert run(["data", "list"]) == 0
    assert "clothing    3,409 photos of garments in ten classes (CC0 1.0)" in capsys.readouterr().out
    assert run(["data", "list", "--output", "json"]) == 0
    sets = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert sets["clothing"].keys() == {"name", "title", "licence", "target"}
    assert sets["clothing"]["target"] == "data/input/clothing"


def test_a_fetched_set_is_where_its_recipe_looks_and_progress_is_on_stderr(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer alone is on stdout; a second fetch finds the set there."""
    assert run(["data", "fetch", "tiny"]) == 0
    out, error = capsys.readouterr()
    assert out == f"tiny: 1 files fetched and verified: {tiny}\n"
    assert error == "  0 of 0 MiB\n"
    assert (tiny / "hats" / "hat" / "1.jpg").read_bytes() == b"one"
    assert run(["data", "fetch", "tiny", "--output", "json"]) == 0
    out, error = capsys.readouterr()
    assert json.loads(out) == {"name": "tiny", "target": str(tiny), "files": 1, "was_there": True}
    assert error == ""


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["tinny"], 2, "Did you mean 'tiny'"),
        (["tiny", "--url", "{server}/page.html"], 4, "no usable zip archive"),
        (["tiny", "--to", "{folder}"], 5, "holds something else"),
        (["tiny", "--url", NOWHERE], 6, "cannot be reached"),
        (["tiny", "--url", "{server}/gone.zip"], 6, "404"),
    ],
    ids=["name", "another", "in-use", "no-server", "not-found"],
)
def test_a_fetch_that_fails_ends_with_the_code_that_says_why(
    tiny: Path, server: str, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, says: str
) -> None:
    """The codes that the help names, one line on stderr, and the same as JSON; nothing appears in the folder."""
    given = [text.format(server=server, folder=tiny.parents[1]) for text in arguments]
    assert run(["data", "fetch", *given, "--output", "json"]) == code
    out, error = capsys.readouterr()
    assert json.loads(out)["exit_code"] == code
    [line] = [line for line in error.splitlines() if line.startswith("forebay: ")]
    assert says in line
    assert not tiny.exists()
