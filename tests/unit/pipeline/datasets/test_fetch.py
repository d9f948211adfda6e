"""A public set arrives whole and verified, or not at all; the server is a real one on loopback."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.errors import DataError, EnvironmentProblem, ForebayError, RemoteServiceError, UsageError
from pipeline.datasets import catalog
from pipeline.datasets.catalog import DataSet
from pipeline.datasets.fetch import content_digest, fetch

pytestmark = pytest.mark.unit

FILES = {"tops/shirt/1.jpg": b"one", "tops/shirt/2.jpg": b"two", "accessories/hat/3.jpg": b"three"}
MEMBERS = {
    "set-1/train/shirt/1.jpg": b"one",
    "set-1/validation/shirt/2.jpg": b"two",
    "set-1/train/hat/3.jpg": b"three",
    "set-1/test/hat/4.jpg": b"held out",
    "set-1/train/unknown/5.jpg": b"no folder for it",
    "set-1/README.md": b"text",
}


def wanted(files: dict[str, bytes] = FILES) -> DataSet:
    """Returns a set whose digest is that of `files`."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return DataSet(
        title="t",
        licence="CC0 1.0",
        url="http://127.0.0.1:1/none.zip",
        members=r"/(?:train|validation)/(?P<class>[^/]+)/(?P<name>[^/]+\.jpg)$",
        folders={"shirt": "tops/shirt", "hat": "accessories/hat"},
        files=len(files),
        content_sha256=digest.hexdigest(),
        target="unused",
    )


def zipped(members: dict[str, bytes]) -> bytes:
    """Returns a zip archive of the members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


@contextlib.contextmanager
def serving(body: bytes, status: int = 200, length: int | None = None) -> Iterator[str]:
    """Yields the address of a server that answers everything with `body`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keeps the test's output clean."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/archive.zip"
        server.shutdown()
        thread.join()


def ignored(done: int, total: int | None) -> None:
    """Takes progress and says nothing."""


def test_a_set_arrives_under_its_folders_and_a_second_fetch_needs_no_server(tmp_path: Path) -> None:
    """Both parts are merged, what the set does not name stays out, and what is there is verified, not fetched."""
    target, seen = tmp_path / "sub" / "photos", []
    with serving(zipped(MEMBERS)) as url:
        first = fetch(wanted(), target, url, lambda done, total: seen.append((done, total)))
    found = {path.relative_to(target).as_posix(): path.read_bytes() for path in target.rglob("*") if path.is_file()}
    assert found == FILES
    assert not first.was_there
    assert seen[-1][0] == seen[-1][1]
    assert fetch(wanted(), target, "http://127.0.0.1:1/gone.zip", ignored).was_there
    assert [path.name for path in target.parent.iterdir()] == ["photos"]


@pytest.mark.parametrize(
    ("serve", "error", "words"),
    [
        pytest.param(lambda: serving(b"no", 404), RemoteServiceError, "404", id="not-found"),
        pytest.param(lambda: serving(b"<html>sign in</html>"), DataError, "no usable zip archive", id="a-page"),
        pytest.param(lambda: serving(zipped(MEMBERS)[:60], length=900), RemoteServiceError, "900", id="cut-short"),
        pytest.param(
            lambda: serving(zipped({**MEMBERS, "set-1/train/hat/3.jpg": b"another"})), DataError, "digest", id="another"
        ),
        pytest.param(lambda: serving(zipped({"set-1/train/hat/3.jpg": b"three"})), DataError, "1 of the 3", id="fewer"),
        pytest.param(
            lambda: contextlib.nullcontext("http://127.0.0.1:1/x.zip"), RemoteServiceError, "reached", id="no-server"
        ),
        pytest.param(lambda: contextlib.nullcontext("file:///etc/hosts"), UsageError, "web address", id="no-web"),
    ],
)
def test_a_fetch_that_fails_says_why_and_leaves_nothing(
    tmp_path: Path,
    serve: Callable[[], contextlib.AbstractContextManager[str]],
    error: type[ForebayError],
    words: str,
) -> None:
    """Each fault has its own words and exit code, and the folder does not appear."""
    with serve() as url, pytest.raises(error, match=words):
        fetch(wanted(), tmp_path / "photos", url, ignored)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_content_is_never_touched(tmp_path: Path) -> None:
    """What a user keeps under that name stays as it is."""
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(EnvironmentProblem, match="holds something else"):
        fetch(wanted(), tmp_path, "http://127.0.0.1:1/x.zip", ignored)
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "mine"


def test_members_cannot_leave_the_target(tmp_path: Path) -> None:
    """A hostile path in the archive decides nothing but a class and a plain name."""
    hostile = {"../../x/train/hat/3.jpg": b"three", "/abs/train/shirt/1.jpg": b"one", "a/train/shirt/2.jpg": b"two"}
    with serving(zipped(hostile)) as url:
        fetch(wanted(), tmp_path / "photos", url, ignored)
    assert content_digest(tmp_path / "photos")[0] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


def test_the_catalog_is_readable_and_an_unknown_name_gets_the_nearest() -> None:
    """Every set in the catalog is complete; its target is where the recipe of that name looks."""
    from core.settings import load
    from core.settings.load import BASE_FILE

    assert "clothing" in catalog.names()
    for name in catalog.names():
        settings = load([str(BASE_FILE.parent / f"{name}.yaml")]).settings
        assert catalog.find(name).target == settings.data.path
    with pytest.raises(UsageError, match="clothing"):
        catalog.find("clothin")
