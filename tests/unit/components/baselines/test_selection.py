"""A baseline is the newest accepted one that is not the candidate itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ml_metadata.proto import metadata_store_pb2 as pb

from components.baselines import selection

pytestmark = pytest.mark.unit

HERE = __file__  # Something that exists.


def artifact(number: int, digest: str = "", **integers: int) -> Any:
    """Returns an MLMD artifact with these integer properties and this content."""
    made = pb.Artifact(id=number, uri=HERE)
    if digest:
        made.custom_properties[selection.CONTENT_DIGEST].string_value = digest
    for key, value in integers.items():
        made.custom_properties[key].int_value = value
    return made


def test_the_newest_blessed_model_wins() -> None:
    """Unblessed models, however new, are no baseline."""
    models = [artifact(1, "a"), artifact(2, "b"), artifact(3, "c")]
    blessings = [
        artifact(11, blessed=1, current_model_id=1),
        artifact(12, blessed=1, current_model_id=2),
        artifact(13, blessed=0, current_model_id=3),
    ]
    found = selection.newest_blessed_model(models, blessings, artifact(4, "d"), {})
    assert found is not None
    assert (found[0].id, found[1].id) == (2, 12)


@pytest.mark.parametrize("candidate", [artifact(2, "other"), artifact(9, "b")], ids=["same-id", "same-content"])
def test_a_model_is_never_its_own_baseline(candidate: Any) -> None:
    """Neither the same artifact nor another with the same bytes counts: the older one is the baseline."""
    models = [artifact(1, "a"), artifact(2, "b")]
    blessings = [artifact(11, blessed=1, current_model_id=1), artifact(12, blessed=1, current_model_id=2)]
    found = selection.newest_blessed_model(models, blessings, candidate, {})
    assert found is not None
    assert found[0].id == 1


def test_no_blessing_means_no_baseline() -> None:
    """A first run has nothing to be compared with."""
    assert selection.newest_blessed_model([artifact(1)], [], None, {}) is None


def test_a_model_that_was_blessed_again_counts_from_then() -> None:
    """After going back to an older model, that one is the baseline, not the one in between."""
    models = [artifact(1, "a"), artifact(2, "b")]
    blessings = [
        artifact(11, blessed=1, current_model_id=1),
        artifact(12, blessed=1, current_model_id=2),
        artifact(13, blessed=1, current_model_id=1),
    ]
    found = selection.newest_blessed_model(models, blessings, artifact(3, "c"), {})
    assert found is not None
    assert found[0].id == 1


def test_statistics_of_refused_data_are_no_baseline() -> None:
    """Drift is measured from the last data that the gate let pass, not from the data it refused."""
    statistics = [artifact(1, "a"), artifact(2, "b"), artifact(3, "c")]
    reports = [artifact(21, blocked=0), artifact(22, blocked=1)]
    read = {21: [1], 22: [2]}
    found = selection.newest_accepted_statistics(statistics, reports, artifact(3, "c"), {}, read.__getitem__)
    assert found is not None
    assert (found[0].id, found[1].id) == (1, 21)
    again = selection.newest_accepted_statistics(statistics, reports, artifact(1, "a"), {}, read.__getitem__)
    assert again is None


def test_an_artifact_without_properties_is_neither_blessed_nor_equal() -> None:
    """Artifacts of other runners, without our digests, are told apart by id alone."""
    bare: Any = SimpleNamespace(id=5, custom_properties={})
    assert not selection.same_content(bare, artifact(6))
    assert selection.same_content(bare, SimpleNamespace(id=5, custom_properties={}))


def test_what_was_reused_last_was_accepted_last() -> None:
    """Data A, then B, then B again after A ran once more: B's reused report is the newest, whatever its id."""
    statistics = [artifact(1, "a"), artifact(2, "b")]
    reports = [artifact(21, blocked=0), artifact(22, blocked=0)]
    read = {21: [1], 22: [2]}
    given = {21: 90, 22: 40}
    found = selection.newest_accepted_statistics(statistics, reports, artifact(3, "c"), given, read.__getitem__)
    assert found is not None
    assert found[0].id == 1


def test_what_is_not_on_this_machine_is_no_baseline() -> None:
    """On a shared server another machine's model cannot be loaded here: the next one counts."""
    models = [artifact(1, "a"), artifact(2, "b")]
    models[1].uri = "/of/another/machine"
    blessings = [artifact(11, blessed=1, current_model_id=1), artifact(12, blessed=1, current_model_id=2)]
    found = selection.newest_blessed_model(models, blessings, None, {})
    assert found is not None
    assert found[0].id == 1


def test_a_consent_is_found_by_the_model_that_it_was_given_for() -> None:
    """The reason of the newest consent to one of these models; none for others, and none from a refusal."""
    blessings = [artifact(11, blessed=1, current_model_id=1), artifact(12, blessed=0, current_model_id=2)]
    for blessing in blessings:
        blessing.custom_properties["accepted_new_baseline"].string_value = "new label"
    assert selection.consent(blessings, {1}) == "new label"
    assert selection.consent(blessings, {2, 3}) is None
