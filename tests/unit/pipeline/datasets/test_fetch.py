"""A public set arrives whole and verified, or not at all; the server is a real one on loopback."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import http.server
import io
import ssl
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.errors import DataError, EnvironmentProblem, ForebayError, RemoteServiceError, UsageError
from pipeline.datasets import catalog
from pipeline.datasets import fetch as fetching
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


def damaged(compression: int) -> bytes:
    """Returns an archive whose one member cannot be unpacked, although its name and place are right."""
    stream, name = io.BytesIO(), "set-1/train/hat/3.jpg"
    with zipfile.ZipFile(stream, "w", compression) as archive:
        archive.writestr(name, b"three" * 999)
    whole = bytearray(stream.getvalue())
    if compression == zipfile.ZIP_STORED:
        # Both sizes in the directory at its end: more bytes than the archive has.
        directory = whole.index(b"PK\x01\x02")
        whole[directory + 20 : directory + 28] = (1 << 20).to_bytes(4, "little") * 2
    else:
        start = 30 + len(name)
        whole[start : start + 8] = b"\xff" * 8
    return bytes(whole)


@contextlib.contextmanager
def serving(body: bytes, status: int = 200, length: int | str | None = None) -> Iterator[str]:
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
        pytest.param(lambda: serving(damaged(zipfile.ZIP_STORED)), DataError, "no usable zip", id="member-cut"),
        pytest.param(lambda: serving(damaged(zipfile.ZIP_DEFLATED)), DataError, "no usable zip", id="deflate"),
        pytest.param(lambda: serving(damaged(zipfile.ZIP_BZIP2)), DataError, "no usable zip", id="bzip2"),
        pytest.param(lambda: serving(damaged(zipfile.ZIP_LZMA)), DataError, "no usable zip", id="lzma"),
        pytest.param(
            lambda: serving(zipped({**MEMBERS, "set-1/train/hat/3.jpg": b"another"})), DataError, "digest", id="another"
        ),
        pytest.param(lambda: serving(zipped({"set-1/train/hat/3.jpg": b"three"})), DataError, "1 of the 3", id="fewer"),
        pytest.param(
            lambda: contextlib.nullcontext("http://127.0.0.1:1/x.zip"), RemoteServiceError, "reached", id="no-server"
        ),
        pytest.param(lambda: contextlib.nullcontext("file:///etc/hosts"), UsageError, "web address", id="no-web"),
        pytest.param(lambda: contextlib.nullcontext("http://[/x.zip"), UsageError, "web address", id="no-host"),
        pytest.param(lambda: contextlib.nullcontext("http://a:b/x.zip"), UsageError, "web address", id="no-port"),
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


def test_a_length_that_is_no_number_counts_as_unknown(tmp_path: Path) -> None:
    """What a careless proxy writes there does not stop a set that arrives whole."""
    seen: list[int | None] = []
    with serving(zipped(MEMBERS), length="many") as url:
        fetch(wanted(), tmp_path / "photos", url, lambda done, total: seen.append(total))
    assert seen == [None]


def test_a_fault_of_the_connection_is_not_taken_for_one_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Encryption that breaks while bytes arrive is the server's (exit 6); a folder that cannot be made is ours (5)."""
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with serving(zipped(MEMBERS)) as url:
        with pytest.raises(EnvironmentProblem, match="cannot be written"):
            fetch(wanted(), tmp_path / "file" / "photos", url, ignored)

        def broken(*_: object) -> bytes:
            raise ssl.SSLError(1, "bad record")

        monkeypatch.setattr(http.client.HTTPResponse, "read", broken)
        with pytest.raises(RemoteServiceError, match="bad record"):
            fetch(wanted(), tmp_path / "photos", url, ignored)


def test_a_larger_folder_is_refused_without_reading_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Naming a home folder costs a count, which ends at one file more than the set has."""
    for number in range(9):
        (tmp_path / f"{number}.jpg").write_bytes(b"mine")
    looked_at: list[Path] = []
    is_file = Path.is_file

    def counted(path: Path) -> bool:
        looked_at.append(path)
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", counted)
    monkeypatch.setattr(fetching, "sha256_file", lambda path: pytest.fail(f"{path} was read"))
    with pytest.raises(EnvironmentProblem, match="holds something else"):
        fetch(wanted(), tmp_path, "http://127.0.0.1:1/x.zip", ignored)
    assert len(looked_at) == len(FILES) + 1


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
