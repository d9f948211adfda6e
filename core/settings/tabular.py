"""Settings of the tabular recipe: which columns become which features, and what the label is."""

from __future__ import annotations

from typing import Annotated, Union

import pydantic

from core.settings.section import Section

PositiveInt = Annotated[int, pydantic.Field(gt=0)]


class Categorical(Section):
    """A column whose values are names: either a learned vocabulary or a known range of integers.

    Exactly one of `top_k` (vocabulary of the most frequent values) and `integers` (values 0 to integers - 1) is set.
    """

    top_k: Union[PositiveInt, None] = None
    integers: Union[PositiveInt, None] = None
    oov_buckets: PositiveInt = 1

    @pydantic.model_validator(mode="after")
    def _one_kind(self) -> Categorical:
        if (self.top_k is None) == (self.integers is None):
            raise ValueError("set exactly one of top_k and integers")
        return self


class Cross(Section):
    """Two or more bucketized or categorical columns hashed together."""

    columns: Annotated[list[str], pydantic.Field(min_length=2)]
    hash_buckets: PositiveInt


class FeatureSettings(Section):
    """Which columns the model reads, and as what."""

    numeric: list[str]
    bucketized: dict[str, Annotated[int, pydantic.Field(ge=2)]]
    categorical: dict[str, Categorical]
    crossed: list[Cross]

    def columns(self) -> list[str]:
        """Returns the raw column names, each once, in a stable order."""
        return list(dict.fromkeys([*self.numeric, *self.bucketized, *self.categorical]))

    @pydantic.model_validator(mode="after")
    def _columns_make_sense(self) -> FeatureSettings:
        repeated = sorted({name for name in self.numeric if self.numeric.count(name) > 1})
        if repeated:
            raise ValueError(f"numeric names {repeated[0]!r} twice")
        twice = sorted(set(self.bucketized) & set(self.categorical))
        if twice:
            raise ValueError(f"{twice[0]!r} is both bucketized and categorical")
        crossable = {*self.bucketized, *self.categorical}
        for cross in self.crossed:
            unknown = sorted(set(cross.columns) - crossable)
            if unknown:
                raise ValueError(f"crossed column {unknown[0]!r} is neither bucketized nor categorical")
        return self


class LabelSettings(Section):
    """What the model predicts: a binary label.

    With `above_share_of`, the label is 1 where `column` is above `share` times that other column. With `positive`, it
    is 1 where `column` holds that text (or that whole number) and 0 where it holds another. With neither, `column`
    itself holds 0 and 1.
    """

    name: str
    column: str
    above_share_of: Union[str, None] = None
    share: Union[Annotated[float, pydantic.Field(gt=0.0)], None] = None
    positive: Union[Annotated[str, pydantic.Field(min_length=1)], None] = None

    @pydantic.model_validator(mode="after")
    def _rule_is_complete(self) -> LabelSettings:
        if (self.above_share_of is None) != (self.share is None):
            raise ValueError("above_share_of and share go together")
        if self.positive is not None and self.share is not None:
            raise ValueError("positive and share are two rules: set one")
        return self
