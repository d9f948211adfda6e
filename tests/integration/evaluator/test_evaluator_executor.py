"""The Evaluator on real SavedModels: values, verdicts, blessing."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError
from core.gates import GateResult

pytestmark = pytest.mark.integration

Evaluate = Callable[..., tuple[dict[str, Any], Any, Path]]


def _gates(verdict: dict[str, Any]) -> dict[str, GateResult]:
    return {gate["name"]: GateResult.from_dict(gate) for gate in verdict["gates"]}


def test_a_good_model_is_blessed_as_tfx_writes_it(evaluate: Evaluate, good_model: str) -> None:
    """The verdict counts the examples, and the blessing has the file and properties that TFX's Pusher reads."""
    verdict, blessing, _ = evaluate(good_model, auc={"min": 0.7, "max_drop": 0.01, "slices": ["hour"]})
    assert (verdict["blessed"], verdict["examples"], verdict["baseline"]) == (True, 600, None)
    assert [path.name for path in Path(blessing.uri).iterdir()] == ["BLESSED"]
    assert blessing.get_int_custom_property("blessed") == 1
    assert blessing.get_int_custom_property("current_model_id") == 11
    assert blessing.get_string_custom_property("current_model") == good_model
    assert not blessing.has_custom_property("baseline_model")
    gates = _gates(verdict)
    assert gates["evaluate.auc.max_drop"].status.value == "not evaluated"
    assert gates["evaluate.auc.min:hour=4"].status.value == "no data"
    assert gates["evaluate.auc.min:hour=2"].status.value == "passed"


def test_a_worse_model_is_refused_against_the_baseline(evaluate: Evaluate, good_model: str, poor_model: str) -> None:
    """A drop beyond the limit is NOT_BLESSED without an exception; both values stand in the verdict."""
    verdict, blessing, _ = evaluate(poor_model, baseline=good_model, auc={"min": 0.5, "max_drop": 0.01})
    assert verdict["blessed"] is False
    assert [path.name for path in Path(blessing.uri).iterdir()] == ["NOT_BLESSED"]
    assert (blessing.get_int_custom_property("blessed"), blessing.get_int_custom_property("baseline_model_id")) == (
        0,
        7,
    )
    drop = _gates(verdict)["evaluate.auc.max_drop"]
    expected = verdict["baseline"]["metrics"]["auc"] - verdict["metrics"]["auc"]
    assert (drop.status.value, drop.observed) == ("failed", pytest.approx(expected))
    assert expected > 0.01


def test_a_model_is_never_its_own_baseline(evaluate: Evaluate, good_model: str) -> None:
    """The candidate's own artifact as baseline counts as none: comparing a model with itself always passes."""
    verdict, _, _ = evaluate(good_model, baseline=good_model, auc={"max_drop": 0.01})
    assert verdict["baseline"] is None
    assert verdict["blessed"] is False
    assert "no baseline" in _gates(verdict)["evaluate.auc.max_drop"].reason


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        pytest.param("signature", "lacks the signature 'transform_features'", id="lacks-a-signature"),
        pytest.param("graph", "cannot be loaded", id="cannot-be-loaded"),
        pytest.param("gone", "there is no SavedModel", id="deleted"),
    ],
)
def test_an_incompatible_baseline_has_its_own_verdict(
    evaluate: Evaluate, save_model: Callable[..., str], good_model: str, tmp_path: Path, damage: str, problem: str
) -> None:
    """A baseline that cannot be measured blocks change bounds with its reason; a consent is recorded and lets go."""
    if damage == "signature":
        baseline = save_model(lambda x: x, signatures=("serving_default",))
    else:
        baseline = str(shutil.copytree(good_model, tmp_path / "damaged"))
        graph = Path(baseline) / "Format-Serving" / "saved_model.pb"
        graph.write_bytes(b"\x00 not a model") if damage == "graph" else graph.unlink()
    verdict, _, _ = evaluate(good_model, baseline=baseline, auc={"min": 0.5, "max_drop": 0.01})
    assert (verdict["blessed"], verdict["baseline"]["compatible"]) == (False, False)
    assert problem in _gates(verdict)["evaluate.auc.max_drop"].reason
    accepted, blessing, _ = evaluate(
        good_model, baseline=baseline, accept="new format", auc={"min": 0.5, "max_drop": 0.01}
    )
    assert (accepted["blessed"], accepted["accepted_new_baseline"]) == (True, "new format")
    assert blessing.get_string_custom_property("accepted_new_baseline") == "new format"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [pytest.param(0.3, "for every one of 600 examples", id="constant"), pytest.param(math.nan, "600 of 600", id="nan")],
)
def test_models_that_say_nothing_are_refused(
    evaluate: Evaluate, save_model: Callable[..., str], value: float, sentence: str
) -> None:
    """R07: a constant and a NaN model are named for what they are, although a weak bound might pass."""
    verdict, _, _ = evaluate(save_model(lambda x: x * 0 + value), binary_accuracy={"min": 0.1})
    assert verdict["blessed"] is False
    assert sentence in _gates(verdict)["evaluate.predictions"].reason


def test_a_candidate_without_the_contract_is_a_configuration_error(
    evaluate: Evaluate, save_model: Callable[..., str]
) -> None:
    """A candidate that lacks a signature is the recipe's fault: named with the path and what is needed."""
    broken = save_model(lambda x: x, signatures=("serving_default",))
    with pytest.raises(ConfigError) as caught:
        evaluate(broken, auc={"min": 0.5})
    assert "transform_features" in caught.value.headline
    assert caught.value.place.startswith(broken)


def test_a_slicing_column_that_does_not_exist_is_named(evaluate: Evaluate, good_model: str) -> None:
    """A misspelt slicing column is refused with the columns that there are."""
    with pytest.raises(ConfigError) as caught:
        evaluate(good_model, slices=("hours",), auc={"min": 0.5})
    assert "'hours'" in caught.value.headline
    assert "hour" in caught.value.hint


def test_an_empty_eval_split_is_not_blessed(evaluate: Evaluate, good_model: str, tmp_path: Path) -> None:
    """R08: without held-out rows the evaluation ends at once, with "no data" and no blessing."""
    import tensorflow as tf

    (tmp_path / "empty" / "Split-eval").mkdir(parents=True)
    with tf.io.TFRecordWriter(str(tmp_path / "empty" / "Split-eval" / "data.gz"), options="GZIP"):
        pass
    verdict, _, _ = evaluate(good_model, examples=str(tmp_path / "empty"), auc={"min": 0.5})
    assert (verdict["blessed"], verdict["examples"]) == (False, 0)
    assert _gates(verdict)["evaluate.auc.min"].status.value == "no data"
