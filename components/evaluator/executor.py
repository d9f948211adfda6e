"""The Evaluator executor: reads artifacts, asks the plain modules, writes artifacts."""

from __future__ import annotations

import json
import os
from typing import Any

from tfx.components.evaluator import constants
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils
from tfx.utils import path_utils

from components.evaluator import measure, table, tfma_output, verdict
from components.evaluator.classes import measure as classes
from components.evaluator.classes import reports
from components.evaluator.classes.served import OUTPUT, ServedClassifier
from components.evaluator.classes.truth import LABEL
from components.evaluator.measures import Measures
from components.evaluator.metrics import BINARY, CLASSIFICATION
from components.evaluator.served_model import ContractError, ServedModel
from core.errors import ConfigError, DataError
from core.files import write_atomic, write_json_atomic
from core.label_map import FILE_NAME

_EVAL = "eval"


class Executor(base_executor.BaseExecutor):
    """Writes `evaluation` and `blessing`; a refusal is recorded, never raised."""

    def Do(  # noqa: N802 (TFX's name)
        self, input_dict: dict[str, list[Any]], output_dict: dict[str, list[Any]], exec_properties: dict[str, Any]
    ) -> None:
        """Measures and judges the candidate.

        Raises:
            ConfigError: The candidate does not fulfil the SavedModel contract, or a slicing column is wrong.
            DataError: The examples have no eval split, or no class as text.
        """
        spec = json.loads(exec_properties["spec"])
        model = artifact_utils.get_single_instance(input_dict["model"])
        earlier = _baseline(input_dict.get("baseline_model") or [], model)
        candidate_path = path_utils.serving_model_path(model.uri)
        baseline_path = path_utils.serving_model_path(earlier.uri) if earlier else None
        files = _eval_files(input_dict["examples"])
        schema = _load_schema(artifact_utils.get_single_instance(input_dict["schema"]).uri)
        measures, label = _MEASURED[spec.get("task", BINARY)](spec, files, schema, candidate_path, baseline_path)
        consent = spec.get("accept_new_baseline")
        baseline = verdict.Baseline(earlier is not None, measures.baseline_problem, consent)
        gates = verdict.judge(spec["evaluate"], measures, baseline)
        facts = _baseline_facts(earlier, measures.baseline_problem)
        record = table.verdict_record(gates, measures, facts, consent)
        evaluation = artifact_utils.get_single_instance(output_dict["evaluation"]).uri
        paths = {tfma_output.CANDIDATE: candidate_path}
        if baseline_path and not measures.baseline_problem:
            paths[tfma_output.BASELINE] = baseline_path
        os.makedirs(evaluation, exist_ok=True)
        if measures.classes is not None:
            reports.write(evaluation, measures.classes)
        tfma_output.write(evaluation, measures, record["blessed"], label, paths)
        write_json_atomic(os.path.join(evaluation, table.FILE_NAME), record)
        _bless(artifact_utils.get_single_instance(output_dict["blessing"]), record, model, earlier)


def _measure_binary(
    spec: dict[str, Any], files: list[str], schema: Any, candidate_path: str, baseline_path: str | None
) -> tuple[Measures, str]:
    """Returns the measures and the name of the label that they are of."""
    label, columns = spec["label"]["name"], spec["evaluate"]["slices"]
    try:
        candidate = ServedModel(candidate_path, label)
        return measure.measure(files, candidate, baseline_path, label, columns, schema), label
    except ContractError as error:
        hint = f"The export needs serving_default and transform_features, with the label {label!r} in the latter."
        raise ConfigError(f"the model cannot be evaluated: {error}", place=candidate_path, hint=hint) from error


def _measure_classification(
    spec: dict[str, Any], files: list[str], schema: Any, candidate_path: str, baseline_path: str | None
) -> tuple[Measures, str]:
    """Returns the measures and the name of the label that they are of."""
    columns = spec["evaluate"]["slices"]
    worst = spec["evaluate"]["thresholds"].get("worst_class_recall", {})
    try:
        candidate = ServedClassifier(candidate_path)
        fewest = worst.get("min_examples", 1)
        return classes.measure(files, candidate, baseline_path, columns, schema, fewest), LABEL
    except ContractError as error:
        hint = f"The export needs serving_default with {OUTPUT!r}, one for each class of {FILE_NAME}."
        raise ConfigError(f"the model cannot be evaluated: {error}", place=candidate_path, hint=hint) from error


_MEASURED = {BINARY: _measure_binary, CLASSIFICATION: _measure_classification}


def _baseline(artifacts: list[Any], candidate: Any) -> Any | None:
    """Returns the baseline model; a model is never its own baseline, it would pass every change threshold."""
    return next((item for item in artifacts if item.uri != candidate.uri), None)


def _baseline_facts(baseline: Any | None, problem: str) -> dict[str, Any] | None:
    if baseline is None:
        return None
    return {"uri": baseline.uri, "id": baseline.id, "compatible": not problem, "problem": problem or None}


def _eval_files(examples: list[Any]) -> list[str]:
    from tfx.dsl.io import fileio

    splits = artifact_utils.decode_split_names(artifact_utils.get_single_instance(examples).split_names)
    if _EVAL not in splits:
        raise DataError(f"the examples have the splits {splits}, none is called {_EVAL!r}")
    return sorted(path for uri in artifact_utils.get_split_uris(examples, _EVAL) for path in fileio.glob(f"{uri}/*"))


def _load_schema(uri: str) -> Any:
    from tfx.utils import io_utils

    return io_utils.SchemaReader().read(io_utils.get_only_uri_in_dir(uri))


def _bless(blessing: Any, record: dict[str, Any], model: Any, baseline: Any | None) -> None:
    """Writes the blessing as TFX's Evaluator does: its Pusher and LatestBlessedModelStrategy read these properties."""
    blessing.set_string_custom_property(constants.ARTIFACT_PROPERTY_CURRENT_MODEL_URI_KEY, model.uri)
    blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY, model.id)
    if baseline is not None:
        blessing.set_string_custom_property(constants.ARTIFACT_PROPERTY_BASELINE_MODEL_URI_KEY, baseline.uri)
        blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_BASELINE_MODEL_ID_KEY, baseline.id)
    if record["accepted_new_baseline"]:
        blessing.set_string_custom_property("accepted_new_baseline", record["accepted_new_baseline"])
    blessed = record["blessed"]
    value = constants.BLESSED_VALUE if blessed else constants.NOT_BLESSED_VALUE
    blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_BLESSED_KEY, value)
    name = constants.BLESSED_FILE_NAME if blessed else constants.NOT_BLESSED_FILE_NAME
    write_atomic(os.path.join(blessing.uri, name), "")
