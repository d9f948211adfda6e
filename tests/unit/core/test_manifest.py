"""The manifest of a version: written and read back without loss, refused when it is not one."""

from __future__ import annotations

import dataclasses
import json

import pytest

from core.errors import DataError
from core.manifest import FileRecord, Manifest, Provenance, Rollback, model_digest

pytestmark = pytest.mark.unit

FILES = {
    "saved_model.pb": FileRecord("aa", 10),
    "variables/variables.index": FileRecord("bb", 20),
    "assets.extra/tf_serving_warmup_requests": FileRecord("cc", 30),
}
PUSHED = Manifest(
    project="forebay",
    model="taxi",
    version=1800000000,
    pushed_at="2027-01-15T08:00:00+00:00",
    pushed_by="run",
    files=FILES,
    provenance=Provenance(
        run_id="r1",
        digests={"data": "d", "code": "c"},
        metrics={"auc": 0.93},
        gates=({"name": "model.auc", "status": "passed"},),
        optimizer=None,
        host={"cpu": {"model": "x"}, "gpus": [], "versions": {"tensorflow": "2.16.2"}},
    ),
)
ROLLED_BACK = dataclasses.replace(
    PUSHED, pushed_by="rollback", rollback=Rollback(1799999000, "old", 1799999999, "bad", "complaints")
)


@pytest.mark.parametrize("manifest", [PUSHED, ROLLED_BACK], ids=["run", "rollback"])
def test_a_manifest_survives_writing_and_reading(manifest: Manifest) -> None:
    """Parsing the written bytes gives an equal manifest, and writing that gives equal bytes."""
    parsed = Manifest.parse(manifest.to_json(), "here")
    assert parsed == manifest
    assert parsed.to_json() == manifest.to_json()


def test_the_written_form_has_the_agreed_keys() -> None:
    """Programs that read manifests find every promised key at the top level, the optimizer's as null."""
    record = json.loads(ROLLED_BACK.to_json())
    assert set(record) == {
        "format_version", "project", "model", "version", "pushed_at", "pushed_by", "files", "run_id", "digests",
        "metrics", "gates", "optimizer", "host", "rollback", "source_version", "model_digest",
        "worst_class",
    }  # fmt: skip
    assert record["optimizer"] is None
    assert record["source_version"] == 1799999000
    assert record["files"]["saved_model.pb"] == {"sha256": "aa", "size_bytes": 10}


def test_a_manifest_from_before_there_were_classes_is_read() -> None:
    """A version that serves since long has no worst_class; any other key that is missing is named."""
    record = PUSHED.to_dict()
    del record["worst_class"]
    assert Manifest.parse(json.dumps(record).encode(), "here") == PUSHED
    del record["host"]
    with pytest.raises(DataError, match="lacks 'host'"):
        Manifest.parse(json.dumps(record).encode(), "here")


def test_the_model_digest_ignores_what_is_beside_the_model() -> None:
    """Other warm-up records leave the digest alone; another graph, or another file name, changes it."""
    extra = {**FILES, "assets.extra/tf_serving_warmup_requests": FileRecord("dd", 31)}
    graph = {**FILES, "saved_model.pb": FileRecord("ab", 10)}
    renamed = {("saved_model.pbtxt" if path == "saved_model.pb" else path): record for path, record in FILES.items()}
    assert model_digest(extra) == model_digest(FILES) == PUSHED.model_digest
    assert len({model_digest(FILES), model_digest(graph), model_digest(renamed)}) == 3


def test_the_size_is_that_of_all_files() -> None:
    """The size of a version is the sum over its listed files."""
    assert PUSHED.size_bytes == 60


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", "not a readable manifest", id="empty"),
        pytest.param(b"{", "not a readable manifest", id="cut short"),
        pytest.param(b"[]", "not a readable manifest", id="a list"),
        pytest.param(b"null", "not a readable manifest", id="null"),
        pytest.param(b"{}", "lacks 'format_version'", id="no version"),
        pytest.param(b'{"format_version": 99}', "format 99, this Forebay reads format 1", id="newer format"),
        pytest.param(PUSHED.to_json().replace(b'"files"', b'"file"'), "lacks 'files'", id="missing key"),
        pytest.param(PUSHED.to_json().replace(b'"sha256"', b'"md5"'), "unexpected keyword", id="unknown field"),
        pytest.param(
            PUSHED.to_json().replace(b'"pushed_by": "run"', b'"pushed_by": "hand"'), "hand", id="unknown pusher"
        ),
        pytest.param(b"\xff\xfe", "not a readable manifest", id="not text"),
    ],
)
def test_what_is_no_manifest_is_refused(content: bytes, words: str) -> None:
    """Bytes that are no manifest of this format give a data error that names the place and the problem."""
    with pytest.raises(DataError, match=words) as caught:
        Manifest.parse(content, "serving/7/manifest.json")
    assert caught.value.place == "serving/7/manifest.json"
    assert caught.value.exit_code == 4
