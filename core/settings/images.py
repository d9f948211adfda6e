"""Settings of the image recipe: how photos become examples, and what classifies them."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Union

import pydantic

from core.settings.section import Section

PositiveInt = Annotated[int, pydantic.Field(gt=0)]
Share = Annotated[float, pydantic.Field(ge=0.0, le=1.0)]
# How many blocks a backbone has that can be trained in part; the small network is always trained whole.
BACKBONE_BLOCKS = {"efficientnet_lite0": 16}


class ImageIngestSettings(Section):
    """How a tree of photos, or a manifest of them, becomes examples."""

    manifest: Union[str, None]
    max_side_px: Annotated[int, pydantic.Field(ge=32, le=8192)]
    jpeg_quality: Annotated[int, pydantic.Field(ge=50, le=100)]
    max_pixels: PositiveInt
    group_pattern: Union[str, None]
    near_duplicate_bits: Union[Annotated[int, pydantic.Field(ge=0, le=32)], None]
    empty_class: Literal["warn", "refuse"]

    @pydantic.model_validator(mode="after")
    def _pattern_has_a_group(self) -> ImageIngestSettings:
        if self.group_pattern is None:
            return self
        try:
            groups = re.compile(self.group_pattern).groups
        except re.error as error:
            raise ValueError(f"group_pattern is no regular expression: {error}") from None
        if groups != 1:
            raise ValueError(f"group_pattern needs exactly one group, the product id; it has {groups}")
        return self


class AugmentSettings(Section):
    """Random changes of training photos; 0 and false switch each off."""

    flip: bool
    shift_share: Share
    zoom_share: Annotated[float, pydantic.Field(ge=0.0, lt=1.0)]
    brightness_share: Share
    contrast_share: Annotated[float, pydantic.Field(ge=0.0, lt=1.0)]


class ClassifierSettings(Section):
    """The network that classifies photos, and how it is trained."""

    backbone: Literal["efficientnet_lite0", "small_cnn"]
    weights: Literal["imagenet", "none"]
    image_px: Annotated[int, pydantic.Field(ge=32, le=1024)]
    dropout: Annotated[float, pydantic.Field(ge=0.0, lt=1.0)]
    label_smoothing: Annotated[float, pydantic.Field(ge=0.0, lt=1.0)]
    class_weights: Literal["none", "balanced"]
    feature_epochs: Annotated[int, pydantic.Field(ge=0)]
    feature_learning_rate: Annotated[float, pydantic.Field(gt=0.0)]
    weight_decay: Annotated[float, pydantic.Field(ge=0.0)]
    fine_tune_epochs: Annotated[int, pydantic.Field(ge=0)]
    fine_tune_blocks: Annotated[int, pydantic.Field(ge=0)]
    fine_tune_learning_rate: Annotated[float, pydantic.Field(gt=0.0)]
    augment: AugmentSettings
    views: Annotated[int, pydantic.Field(ge=1, le=32)]
    top_k: PositiveInt

    @pydantic.model_validator(mode="after")
    def _phases_make_sense(self) -> ClassifierSettings:
        if self.backbone == "small_cnn" and self.weights == "imagenet":
            raise ValueError("small_cnn has no ImageNet weights: set weights to none")
        if self.feature_epochs + self.fine_tune_epochs == 0:
            raise ValueError("feature_epochs and fine_tune_epochs are both 0: nothing would be trained")
        if self.weights == "none" and self.fine_tune_epochs == 0:
            raise ValueError("without pretrained weights the backbone must be trained: set fine_tune_epochs")
        return self
