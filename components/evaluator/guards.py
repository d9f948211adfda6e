"""Gates that need no threshold: are the predictions numbers, and do they say anything? Light, as the verdict is."""

from __future__ import annotations

from components.evaluator.classes.facts import ClassFacts
from components.evaluator.measures import Measures, finite
from core.gates import GateResult, Severity, Status

# How many classes a reason names.
_NAMED = 3


def guards(measures: Measures) -> list[GateResult]:
    """Returns whether the predictions can be judged at all, and for many classes whether their names are known."""
    results = [_predictions(measures)]
    if measures.classes is not None:
        results.append(_unknown(measures.classes, measures.overall.examples))
    return results


def _predictions(measures: Measures) -> GateResult:
    """Returns whether the predictions are numbers, and not one answer for everything."""
    overall, name = measures.overall, "evaluate.predictions"
    details = {"lowest": finite(measures.lowest), "highest": finite(measures.highest), "examples": overall.examples}
    if not overall.examples:
        return GateResult(name, Status.NO_DATA, reason="the eval split holds no labelled example", details=details)
    if overall.not_finite:
        reason = f"the model predicts NaN or infinity for {overall.not_finite} of {overall.examples} examples"
        return GateResult(name, Status.FAILED, overall.not_finite, 0, "examples", reason, details=details)
    constant = _constant(measures)
    if constant is not None:
        text = f"{constant:.6g}" if isinstance(constant, float) else constant
        reason = f"the model predicts {text} for every one of {overall.examples} examples"
        return GateResult(name, Status.FAILED, constant, None, "", reason, details=details)
    what = "predictions" if measures.classes is None else "answers, their probability"
    reason = f"{overall.examples} {what} from {measures.lowest:.3g} to {measures.highest:.3g}"
    return GateResult(name, Status.PASSED, overall.not_finite, 0, "examples", reason, details=details)


def _constant(measures: Measures) -> float | str | None:
    """Returns the one answer that the model has for everything, or None when it has several or one is right."""
    facts = measures.classes
    if facts is None:
        alone = measures.lowest == measures.highest and measures.overall.examples > 1
        return measures.lowest if alone else None
    answered = [label for label, count in zip(facts.labels, facts.confusion.sum(axis=0), strict=True) if count]
    return answered[0] if len(answered) == 1 and facts.true_classes > 1 else None


def _unknown(facts: ClassFacts, examples: int) -> GateResult:
    name, count = "evaluate.unknown_classes", sum(facts.unknown.values())
    details = {"classes": dict(facts.unknown)}
    if not count:
        reason = "the model knows the class of every example" if examples else "there is no example"
        status = Status.PASSED if examples else Status.SKIPPED
        return GateResult(name, status, 0, 0, "examples", reason, Severity.WARN, details)
    named = [f"{label} ({number})" for label, number in list(facts.unknown.items())[:_NAMED]]
    more = len(facts.unknown) - len(named)
    listed = ", ".join(named) + (f" and {more} more" if more else "")
    reason = f"{count} of {examples} examples are of classes unknown to the model and count as wrong: {listed}"
    return GateResult(name, Status.FAILED, count, 0, "examples", reason, Severity.WARN, details)
