"""The types of every setting. What each key means, its unit and its default stand in configs/base.yaml."""

from __future__ import annotations

import datetime
import os
from typing import Annotated, Literal, Union

import pydantic

from core.settings import metadata
from core.settings.data import DataSettings
from core.settings.images import ClassifierSettings
from core.settings.section import Section
from core.settings.tabular import FeatureSettings, LabelSettings

Share = Annotated[float, pydantic.Field(ge=0.0, le=1.0)]
PositiveInt = Annotated[int, pydantic.Field(gt=0)]
Name = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
SeverityName = Literal["block", "warn"]
# A path in which a leading ~ means the home folder.
HomePath = Annotated[str, pydantic.AfterValidator(os.path.expanduser)]


class RunSettings(Section):
    """Where a run keeps its artifacts and metadata, and how it shares them."""

    root: str
    date: Union[datetime.date, None]
    cache: bool
    wait_s: Annotated[int, pydantic.Field(ge=0)]
    metadata: str

    @pydantic.field_validator("root")
    @classmethod
    def _root_is_local(cls, root: str) -> str:
        if "://" in root:
            raise ValueError("the local runner needs a local path; push to remote storage with serving.root")
        if ":" in root:
            raise ValueError("the path holds a ':', which TFX and Beam take for a scheme; choose another")
        return os.path.expanduser(root)

    @pydantic.field_validator("metadata")
    @classmethod
    def _metadata_is_a_store(cls, value: str) -> str:
        metadata.parse(value)
        return value


class SchemaSettings(Section):
    """The curated schema."""

    path: HomePath


class DriftLimits(Section):
    """Distances above which a feature counts as drifted or skewed; null switches a metric off."""

    categorical_l_infinity: Union[Share, None]
    numeric_jensen_shannon: Union[Share, None]
    per_feature: dict[str, Share]


class DataGateSettings(Section):
    """What the data gate does with anomalies, drift and skew."""

    default: SeverityName
    severity: dict[str, SeverityName]
    drift: DriftLimits
    skew: DriftLimits
    min_examples: PositiveInt


class NetworkSettings(Section):
    """The wide-and-deep network of the tabular recipe."""

    hidden_units: Annotated[list[PositiveInt], pydantic.Field(min_length=1)]
    dropout: Annotated[float, pydantic.Field(ge=0.0, lt=1.0)]
    embedding_dimensions: PositiveInt


class TrainingSettings(Section):
    """How the Trainer spends its steps."""

    strategy: Literal["auto", "one_device"]
    batch_size: PositiveInt
    epochs: PositiveInt
    steps: Union[PositiveInt, None]
    eval_steps: Union[PositiveInt, None]
    learning_rate: Annotated[float, pydantic.Field(gt=0.0)]
    seed: int
    tensorboard: bool


class Threshold(Section):
    """Bounds on one metric, overall and on the named slices."""

    min: Union[float, None] = None
    max: Union[float, None] = None
    max_drop: Union[Annotated[float, pydantic.Field(ge=0.0)], None] = None
    max_relative_drop: Union[Share, None] = None
    slices: list[str] = pydantic.Field(default_factory=list)
    min_examples: PositiveInt = 1

    @pydantic.model_validator(mode="after")
    def _bounds_make_sense(self) -> Threshold:
        bounds = (self.min, self.max, self.max_drop, self.max_relative_drop)
        if all(bound is None for bound in bounds):
            raise ValueError("a threshold needs at least one of min, max, max_drop, max_relative_drop")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}: no model can pass")
        return self

    @property
    def is_absolute(self) -> bool:
        """True when the threshold can refuse a model without knowing any other model."""
        return self.min is not None or self.max is not None


class EvaluateSettings(Section):
    """Which metrics decide, on which slices, against which bounds."""

    slices: list[str]
    thresholds: dict[str, Threshold]
    on_no_data: SeverityName

    @pydantic.model_validator(mode="after")
    def _some_gate_is_absolute(self) -> EvaluateSettings:
        if not any(threshold.is_absolute for threshold in self.thresholds.values()):
            raise ValueError(
                "no absolute quality gate: set min or max for at least one metric under evaluate.thresholds, "
                "for example evaluate.thresholds.auc.min=0.7; otherwise the first model would pass whatever it predicts"
            )
        for metric, threshold in self.thresholds.items():
            unknown = sorted(set(threshold.slices) - set(self.slices))
            if unknown:
                raise ValueError(f"thresholds.{metric}.slices names {unknown}, which evaluate.slices does not list")
        return self


class ServingSettings(Section):
    """Where pushed versions go and how many stay."""

    root: HomePath
    keep_versions: PositiveInt
    min_free_mib: Annotated[int, pydantic.Field(ge=0)]
    warmup_records: Annotated[int, pydantic.Field(ge=0, le=1000)]
    s3_endpoint: Union[str, None]


class Settings(Section):
    """Everything a run is told. Immutable; equal settings dump to equal JSON."""

    project: Name
    recipe: Name
    user_code: str
    run: RunSettings
    data: DataSettings
    schema_: Annotated[SchemaSettings, pydantic.Field(alias="schema")]
    data_gate: DataGateSettings
    features: FeatureSettings
    label: LabelSettings
    network: NetworkSettings
    classifier: ClassifierSettings
    training: TrainingSettings
    evaluate: EvaluateSettings
    serving: ServingSettings

    @property
    def is_images(self) -> bool:
        """True for a recipe that classifies photos; false for one that reads columns."""
        return self.data.kind == "images"

    @pydantic.model_validator(mode="after")
    def _names_agree(self) -> Settings:
        if self.is_images:
            return self
        if not self.features.columns():
            raise ValueError("features names no column: the model would have nothing to read")
        leaked = sorted(set(self.features.columns()) & {self.label.column})
        if leaked:
            raise ValueError(f"features uses the label column {leaked[0]!r}: the model would read the answer")
        return self
