"""Metrics of many classes: against loops and scikit-learn, and what holds whatever a model answers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.evaluator.classes.answers import Answers, compare
from components.evaluator.classes.confusion import MOST_MISTAKES, Confusion
from components.evaluator.classes.facts import ClassFacts
from components.evaluator.classes.reports import record
from components.evaluator.classes.totals import ClassTotals
from components.evaluator.classes.truth import MOST_UNKNOWN, ClassNumbers
from components.evaluator.measures import Measures, SliceMeasures
from components.evaluator.metrics import CLASSIFICATION, known_metrics
from core.errors import DataError
from core.label_map import LabelMap, parent_of

pytestmark = pytest.mark.unit

CLASSES = ("a > x", "a > y", "b > x", "b > z", "b > w", "c", "d > e > f")
UNKNOWN = ("a > new", "q")


@dataclasses.dataclass(frozen=True)
class Case:
    """What a model answered for some examples."""

    labels: tuple[str, ...]
    truths: tuple[str, ...]
    probabilities: np.ndarray


@dataclasses.dataclass(frozen=True)
class Measured:
    """What the code under test makes of a case."""

    values: dict[str, float]
    totals: ClassTotals
    facts: ClassFacts

    @property
    def record(self) -> dict[str, Any]:
        """What verdict.json says of the classes."""
        overall = SliceMeasures(None, None, self.totals.examples(0), 0, self.values, None)
        return record(Measures([overall], 0.0, 1.0, classes=self.facts), self.facts)


def _case(seed: int, classes: int, examples: int, sureness: float) -> Case:
    """Random answers, from chance (`sureness` 0) to nearly always right (1); one truth in ten is an unknown class."""
    generator = np.random.default_rng(seed)
    labels = tuple(generator.permutation(CLASSES)[:classes])
    known = generator.random(examples) > 0.1
    truths = tuple(str(generator.choice(labels if one else UNKNOWN)) for one in known)
    logits = generator.normal(size=(examples, classes))
    for row, truth in enumerate(truths):
        if truth in labels:
            logits[row, labels.index(truth)] += 4 * sureness
    probabilities = np.exp(logits)
    return Case(labels, truths, probabilities / probabilities.sum(axis=1, keepdims=True))


def _measure(case: Case, batch: int = 1000, min_examples: int = 1) -> Measured:
    labels = LabelMap(case.labels)
    numbers, totals, confusion = ClassNumbers(labels), ClassTotals(len(case.labels)), Confusion(labels)
    for start in range(0, len(case.truths), batch):
        truths = case.truths[start : start + batch]
        answers = compare(case.probabilities[start : start + batch], truths, labels)
        numbered = numbers.number(truths)
        rows = np.arange(len(truths))
        totals.add(np.zeros_like(rows), rows, answers, numbered, answers.predicted)
        confusion.add(answers, numbered, truths, [f"{start + row}.jpg" for row in rows])
    facts = ClassFacts(
        labels=labels.labels,
        parents=labels.parents,
        confusion=confusion.classes,
        parent_confusion=confusion.parents,
        unknown=numbers.unknown,
        true_classes=len(set(case.truths)),
        mistakes=confusion.mistakes,
        min_examples=min_examples,
    )
    return Measured(totals.values(0, min_examples), totals, facts)


def _by_loops(case: Case, min_examples: int) -> dict[str, float]:
    """The metrics again, one example at a time and from their definitions."""
    right, parents, top, losses, sure = [], [], [], [], []
    answered = []
    for truth, row in zip(case.truths, case.probabilities, strict=True):
        ranked = sorted(zip(row, case.labels, strict=True), reverse=True)
        known = truth in case.labels
        answered.append(ranked[0][1])
        right.append(ranked[0][1] == truth)
        parents.append(known and parent_of(ranked[0][1]) == parent_of(truth))
        top.append(truth in [label for _, label in ranked[:3]])
        probability = row[case.labels.index(truth)] if known else 0.0
        losses.append(-math.log(min(max(probability, 1e-7), 1 - 1e-7)))
        sure.append(ranked[0][0])
    recalls, scores, enough = [], [], []
    for label in sorted(set(case.truths)):
        hits = sum(truth == answer == label for truth, answer in zip(case.truths, answered, strict=True))
        count = case.truths.count(label)
        recalls.append(hits / count)
        scores.append(2 * hits / (count + answered.count(label)))
        enough += [hits / count] if count >= min_examples else []
    gap = 0.0
    for low in range(15):
        inside = [n for n, value in enumerate(sure) if low / 15 <= value < (low + 1) / 15 or (low == 14 and value == 1)]
        gap += abs(sum(sure[n] for n in inside) - sum(right[n] for n in inside)) / len(right)
    several = len(recalls) > 1
    return {
        "accuracy": float(np.mean(right)),
        "parent_accuracy": float(np.mean(parents)),
        "top_3_accuracy": float(np.mean(top)),
        "macro_f1": float(np.mean(scores)) if several else math.nan,
        "macro_recall": float(np.mean(recalls)) if several else math.nan,
        "worst_class_recall": min(enough, default=math.nan),
        "categorical_crossentropy": float(np.mean(losses)),
        "expected_calibration_error": gap,
    }


cases = st.builds(
    _case,
    seed=st.integers(0, 2**32 - 1),
    classes=st.integers(1, len(CLASSES)),
    examples=st.integers(1, 60),
    sureness=st.floats(0, 1),
)


@settings(max_examples=80, deadline=None)
@given(case=cases, min_examples=st.integers(1, 12))
def test_every_metric_agrees_with_its_definition(case: Case, min_examples: int) -> None:
    """Sums over arrays give what a loop over examples gives, for every metric that the settings accept."""
    values = _measure(case, min_examples=min_examples).values
    assert tuple(values) == known_metrics(CLASSIFICATION)
    assert values == pytest.approx(_by_loops(case, min_examples), nan_ok=True)


def test_values_agree_with_scikit_learn() -> None:
    """Accuracy, macro F1, macro recall, log loss, top-3 and the matrix are those of an independent library."""
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not in this environment")
    case = _case(seed=1, classes=7, examples=800, sureness=0.4)
    known = [row for row, truth in enumerate(case.truths) if truth in case.labels]
    case = Case(case.labels, tuple(case.truths[row] for row in known), case.probabilities[known])
    measured = _measure(case)
    truths = [case.labels.index(truth) for truth in case.truths]
    answers, order = case.probabilities.argmax(axis=1), range(len(case.labels))
    assert measured.values["accuracy"] == pytest.approx(metrics.accuracy_score(truths, answers))
    assert measured.values["macro_f1"] == pytest.approx(metrics.f1_score(truths, answers, average="macro"))
    assert measured.values["macro_recall"] == pytest.approx(metrics.balanced_accuracy_score(truths, answers))
    assert measured.values["categorical_crossentropy"] == pytest.approx(
        metrics.log_loss(truths, case.probabilities, labels=order)
    )
    assert measured.values["top_3_accuracy"] == pytest.approx(
        metrics.top_k_accuracy_score(truths, case.probabilities, k=3, labels=order)
    )
    assert measured.facts.confusion[:-1].tolist() == metrics.confusion_matrix(truths, answers).tolist()
    precision, recall, f1, examples = metrics.precision_recall_fscore_support(truths, answers)
    entries = measured.record["classes"]
    assert [entry["precision"] for entry in entries] == pytest.approx(precision.tolist())
    assert [entry["recall"] for entry in entries] == pytest.approx(recall.tolist())
    assert [entry["f1"] for entry in entries] == pytest.approx(f1.tolist())
    assert [entry["examples"] for entry in entries] == examples.tolist()


@settings(max_examples=80, deadline=None)
@given(case=cases)
def test_what_holds_for_every_model(case: Case) -> None:
    """Inequalities between the metrics that follow from what they mean."""
    values = _measure(case).values
    noise = 1e-9
    mean_sureness = case.probabilities.max(axis=1).mean()
    assert values["accuracy"] <= values["top_3_accuracy"]
    assert values["worst_class_recall"] <= values["accuracy"] + noise
    # A wrong answer leaves at most one half for the truth.
    assert (1 - values["accuracy"]) * math.log(2) <= values["categorical_crossentropy"] + noise
    assert abs(values["accuracy"] - mean_sureness) - noise <= values["expected_calibration_error"] <= 1
    if len(set(case.truths)) > 1:
        assert values["worst_class_recall"] <= values["macro_recall"] + noise


@settings(max_examples=60, deadline=None)
@given(case=cases)
def test_the_matrix_adds_up(case: Case) -> None:
    """Rows add up to the examples of a class, columns to its answers, the diagonal to accuracy; parents likewise."""
    measured = _measure(case)
    counts, examples = measured.facts.confusion, len(case.truths)
    unknown = sum(truth not in case.labels for truth in case.truths)
    assert counts.sum(axis=1).tolist() == [*(case.truths.count(label) for label in case.labels), unknown]
    answers = [case.labels[number] for number in case.probabilities.argmax(axis=1)]
    assert counts.sum(axis=0).tolist() == [answers.count(label) for label in case.labels]
    right = int(np.trace(counts[:-1]))
    assert right == round(measured.values["accuracy"] * examples)
    assert len(measured.facts.mistakes) == min(examples - right, MOST_MISTAKES)
    of_parents = measured.facts.parent_confusion
    assert int(np.trace(of_parents[:-1])) == round(measured.values["parent_accuracy"] * examples)
    assert (int(of_parents.sum()), int(of_parents[-1].sum())) == (examples, unknown)


@settings(max_examples=60, deadline=None)
@given(case=cases, seed=st.integers(0, 1000))
def test_the_order_of_the_label_map_means_nothing(case: Case, seed: int) -> None:
    """I10: the same answers under a label map in another order give the same metrics, classes and mistakes."""
    order = np.random.default_rng(seed).permutation(len(case.labels))
    turned = Case(tuple(case.labels[number] for number in order), case.truths, case.probabilities[:, order])
    first, second = _measure(case), _measure(turned)
    assert second.values == pytest.approx(first.values, nan_ok=True)
    by_name = [sorted(one.record["classes"], key=lambda entry: entry["label"]) for one in (first, second)]
    assert by_name[0] == by_name[1]
    assert second.record["parents"] == first.record["parents"]
    assert list(second.facts.mistakes) == list(first.facts.mistakes)


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_batches_do_not_matter(batch: int) -> None:
    """The same examples in other batches give the same metrics, matrix and mistakes."""
    case = _case(seed=2, classes=6, examples=300, sureness=0.2)
    whole, parts = _measure(case), _measure(case, batch)
    assert parts.values == pytest.approx(whole.values)
    assert parts.facts.confusion.tolist() == whole.facts.confusion.tolist()
    assert parts.facts.mistakes == whole.facts.mistakes
    assert len(whole.facts.mistakes) == MOST_MISTAKES


def test_the_surest_mistakes_are_kept_and_equal_ones_go_by_path() -> None:
    """Of more mistakes than fit the most probable stay, surest first; the order of the examples says nothing."""
    labels, confusion = LabelMap(("a", "b")), Confusion(LabelMap(("a", "b")))
    sure = np.repeat([0.6, 0.9, 0.7], MOST_MISTAKES // 2)
    paths = [f"{number:03}.jpg" for number in range(len(sure))]
    for order in (np.arange(len(sure))[::-1][:80], np.arange(len(sure))[::-1][80:]):
        answers = compare(np.stack([1 - sure[order], sure[order]], axis=1), ["a"] * len(order), labels)
        confusion.add(answers, np.zeros(len(order), np.int64), ["a"] * len(order), [paths[row] for row in order])
    assert [mistake.path for mistake in confusion.mistakes] == [*paths[50:100], *paths[100:150]]
    assert {mistake.predicted for mistake in confusion.mistakes} == {"b"}


def test_the_parent_that_is_judged_is_the_one_that_clients_get() -> None:
    """Two middling children outweigh the best class, but the served parent is the best class' own."""
    case = Case(("a > x", "b > x", "b > z"), ("a > x", "b > z"), np.array([[0.4, 0.3, 0.3], [0.4, 0.3, 0.3]]))
    values = _measure(case).values
    assert (values["accuracy"], values["parent_accuracy"]) == (0.5, 0.5)


def test_equal_probabilities_answer_as_the_served_model_does() -> None:
    """Of equal probabilities the first class is the answer, and the fourth is not among the top three."""
    labels = LabelMap(("d", "c", "b", "a"))
    answers = compare(np.full((2, 4), 0.25), ["d", "a"], labels)
    assert answers.predicted.tolist() == [0, 0]
    assert answers.right.tolist() == answers.top_right.tolist() == [True, False]


def test_answers_that_are_not_finite_spoil_their_slices_only() -> None:
    """A NaN makes every metric of its slices NaN, is counted, and is in no matrix."""
    labels = LabelMap(("a", "b"))
    truths = ["a", "b", "b"]
    answers = compare(np.array([[np.nan, 0.5], [0.2, 0.8], [0.9, 0.1]]), truths, labels)
    totals, confusion = ClassTotals(2), Confusion(labels)
    slices, rows = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 2, 0, 1, 2])
    totals.add(slices, rows, answers, labels.indices(truths), answers.predicted)
    confusion.add(answers, labels.indices(truths), truths, ["1", "2", "3"])
    assert [totals.not_finite(index) for index in range(4)] == [1, 1, 0, 0]
    assert [totals.examples(index) for index in range(4)] == [3, 1, 2, 0]
    assert all(math.isnan(value) for index in (0, 1, 3) for value in totals.values(index).values())
    assert (totals.values(2)["accuracy"], totals.worst(0, 1, labels.labels)) == (0.5, None)
    assert confusion.classes.tolist() == [[0, 0], [1, 1], [0, 0]]
    assert [mistake.path for mistake in confusion.mistakes] == ["3"]


@pytest.mark.parametrize(
    ("truths", "min_examples", "expected"),
    [
        pytest.param(["a", "b", "b", "b", "c"], 1, ("c", 0.0, 1), id="lowest-recall"),
        pytest.param(["a", "b", "b", "b", "c"], 2, ("b", 1 / 3, 3), id="with-enough-examples"),
        pytest.param(["a", "b", "b", "b", "c"], 4, None, id="none-has-enough"),
        pytest.param(["z", "c", "z"], 1, ("z", 0.0, 2), id="equal-recalls-more-examples"),
        pytest.param(["z", "c"], 1, ("c", 0.0, 1), id="equal-recalls-first-name"),
    ],
)
def test_the_worst_class(truths: list[str], min_examples: int, expected: tuple[str, float, int] | None) -> None:
    """The class that is recognized least, among those with enough examples, classes that the model lacks included."""
    labels = LabelMap(("a", "b", "c"))
    answers = np.eye(3)[[0, 1, 0, 0, 0][: len(truths)]]
    numbers, totals = ClassNumbers(labels), ClassTotals(3)
    compared = compare(answers, truths, labels)
    rows = np.arange(len(truths))
    totals.add(np.zeros_like(rows), rows, compared, numbers.number(truths), compared.predicted)
    worst = totals.worst(0, min_examples, numbers.names)
    assert (worst and (numbers.names[worst[0]], *worst[1:])) == expected
    value = totals.values(0, min_examples)["worst_class_recall"]
    assert value == expected[1] if expected else math.isnan(value)


def test_a_baseline_answers_in_its_own_classes() -> None:
    """A class that the candidate has forgotten counts for the baseline that knows it: that is what a drop is."""
    candidate, baseline = LabelMap(("a > x", "b")), LabelMap(("b", "a > old"))
    truths = ["a > x", "b", "a > old"]
    numbers = ClassNumbers(candidate)
    numbered = numbers.number(truths)
    answers: Answers = compare(np.array([[0.1, 0.9], [0.7, 0.3], [0.2, 0.8]]), truths, baseline)
    totals, rows = ClassTotals(2), np.arange(3)
    totals.add(np.zeros_like(rows), rows, answers, numbered, numbers.of(baseline.labels)[answers.predicted])
    values = totals.values(0)
    assert values["accuracy"] == pytest.approx(2 / 3)
    assert values["top_3_accuracy"] == pytest.approx(2 / 3)
    assert values["categorical_crossentropy"] == pytest.approx(-(math.log(0.7) + math.log(1e-7) + math.log(0.8)) / 3)
    assert values["macro_recall"] == pytest.approx(2 / 3)
    assert values["macro_f1"] == pytest.approx((0 + 1 + 2 / 3) / 3)
    assert answers.parent_right.tolist() == [False, True, True]


def test_a_label_that_is_no_class_is_refused() -> None:
    """More unknown classes than anyone has are named for what they are: another column under the name label."""
    numbers = ClassNumbers(LabelMap(("a",)))
    names: Sequence[str] = [*(f"photo-{number}.jpg" for number in range(MOST_UNKNOWN + 1)), "a"]
    with pytest.raises(DataError, match=r"unknown to the model, such as 'photo-1000\.jpg'"):
        numbers.number(names)
