"""Settings of the ingestion: where the rows are, how they are written, how they are split."""

from __future__ import annotations

from typing import Annotated, Literal, Union

import pydantic

from core.settings.images import ImageIngestSettings
from core.settings.section import Section

SplitName = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
ColumnType = Literal["integer", "float", "text", "boolean"]


class CsvSettings(Section):
    """How a delimited text file is written."""

    delimiter: Annotated[str, pydantic.Field(min_length=1, max_length=1)]
    quote: Union[Annotated[str, pydantic.Field(min_length=1, max_length=1)], None]
    decimal: Literal[".", ","]
    encoding: str
    null_tokens: list[str]

    @pydantic.model_validator(mode="after")
    def _marks_differ(self) -> CsvSettings:
        if self.delimiter == self.decimal:
            raise ValueError(
                f"delimiter and decimal are both {self.delimiter!r}: a number could not be told from two cells"
            )
        if self.delimiter == self.quote:
            raise ValueError(f"delimiter and quote are both {self.delimiter!r}")
        return self


class SplitSettings(Section):
    """Which rows are for training and which are held out."""

    method: Literal["hash", "group", "time", "stratified"]
    column: Union[str, None]
    shares: dict[SplitName, Annotated[float, pydantic.Field(gt=0.0, le=1.0)]]
    seed: str

    @pydantic.model_validator(mode="after")
    def _is_complete(self) -> SplitSettings:
        if self.method in ("group", "time") and not self.column:
            raise ValueError(f"method {self.method!r} needs split.column")
        if self.method == "stratified" and self.column is not None:
            raise ValueError(
                "method 'stratified' reads no split.column: data.images.group_pattern or the manifest's column group "
                "say which photos stay together"
            )
        missing = {"train", "eval"} - set(self.shares)
        if missing:
            raise ValueError(f"shares lacks {sorted(missing)}; both train and eval are needed")
        if abs(sum(self.shares.values()) - 1.0) > 1e-9:
            raise ValueError(f"shares add up to {sum(self.shares.values()):g}, not to 1")
        return self


class DataSettings(Section):
    """Where the input rows are and how they become examples."""

    kind: Literal["csv", "parquet", "tfrecord", "images"]
    path: str
    csv: CsvSettings
    types: dict[str, ColumnType]
    non_finite: Literal["missing", "refuse"]
    empty_string: Literal["missing", "keep"]
    empty_columns: Literal["exclude", "refuse"]
    max_bad_share: Annotated[float, pydantic.Field(ge=0.0, le=1.0)]
    images: ImageIngestSettings
    split: SplitSettings
    shards: Annotated[int, pydantic.Field(gt=0, le=1000)]

    @pydantic.model_validator(mode="after")
    def _split_fits_the_kind(self) -> DataSettings:
        images = self.kind == "images"
        if images and self.split.method != "stratified":
            raise ValueError("photos need method stratified: each class in the same shares, a product in one split")
        if not images and self.split.method == "stratified":
            raise ValueError("method stratified is for kind images; use hash, group or time")
        return self
