"""The base of every group of settings."""

from __future__ import annotations

import pydantic


class Section(pydantic.BaseModel):
    """A group of settings: unknown keys are errors, values cannot be changed once loaded."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
