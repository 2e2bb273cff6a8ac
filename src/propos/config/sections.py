"""The sections of the settings: types, limits and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Share = Annotated[float, Field(gt=0.0, le=1.0)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Width = Annotated[int, Field(ge=1, le=2**20)]  # of images and layers: products of two still count bytes in 64 bits


def _of_both_views(given: Any) -> Any:
    """Return a single number as a pair, for both views."""
    return (given, given) if isinstance(given, int | float) else given


Pair = Annotated[tuple[Fraction, Fraction], BeforeValidator(_of_both_views)]  # of the first view and of the second

VIEW_PRESETS: dict[str, dict[str, Any]] = {
    # The paper's views (SimCLR without blur).
    "natural": {
        "crop_scale": (0.08, 1.0), "crop_ratio": (0.75, 4 / 3), "flip": 0.5, "turns": 1, "rotation": 0.0,
        "brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1, "jitter": 0.8, "grey": 0.2,
        "blur": (0.0, 0.0), "solarise": (0.0, 0.0),
    },
    # Small grey images of things: hard crops or colour shifts make them unrecognisable.
    "greyscale": {
        "crop_scale": (0.5, 1.0), "crop_ratio": (0.75, 4 / 3), "flip": 0.5, "turns": 1, "rotation": 0.0,
        "brightness": 0.4, "contrast": 0.4, "saturation": 0.0, "hue": 0.0, "jitter": 0.8, "grey": 0.0,
        "blur": (0.0, 0.0), "solarise": (0.0, 0.0),
    },
    # Written characters: a mirrored 2 is no 2.
    "digits": {
        "crop_scale": (0.6, 1.0), "crop_ratio": (0.75, 4 / 3), "flip": 0.0, "turns": 1, "rotation": 15.0,
        "brightness": 0.4, "contrast": 0.4, "saturation": 0.0, "hue": 0.0, "jitter": 0.8, "grey": 0.0,
        "blur": (0.0, 0.0), "solarise": (0.0, 0.0),
    },
}  # fmt: skip


class Section(BaseModel):
    """A section of the settings."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, validate_default=True)


class ViewSettings(Section):
    """Settings of random views; a preset gives the defaults."""

    preset: Literal["natural", "greyscale", "digits"] = "natural"
    size: Width = 32
    # Image files are kept as squares, or in their shape: shorter side 256, so that crops are cut from more pixels.
    keep: Literal["squares", "shapes"] = "squares"
    # What is embedded: the whole image resized to a square, or the middle of it (shorter side 8/7 of the size).
    plain: Literal["whole", "centre"] = "whole"
    crop_scale: tuple[Share, Share] = (0.08, 1.0)
    crop_ratio: tuple[Positive, Positive] = (0.75, 4 / 3)
    flip: Fraction = 0.5
    turns: Literal[1, 2, 4] = 1  # 1: upright; 2: also upside down; 4: any quarter turn
    rotation: Annotated[float, Field(ge=0.0, le=180.0)] = 0.0
    brightness: Fraction = 0.4
    contrast: Fraction = 0.4
    saturation: Fraction = 0.4
    hue: Annotated[float, Field(ge=0.0, le=0.5)] = 0.1
    jitter: Fraction = 0.8
    # Changes of colour as one product, clipped once, hue in YIQ; or in a random order, each clipped, hue in HSV.
    colours: Literal["at-once", "in-turn"] = "at-once"
    grey: Fraction = 0.2
    blur: Pair = (0.0, 0.0)
    solarise: Pair = (0.0, 0.0)

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        return {**VIEW_PRESETS.get(str(given.get("preset", "natural")), {}), **given}

    @model_validator(mode="after")
    def _turns_squares(self) -> ViewSettings:
        if self.rotation and self.keep == "shapes":
            raise ValueError("images that keep their shape are not rotated: set views.keep=squares or views.rotation=0")
        return self

    @field_validator("crop_scale", "crop_ratio")
    @classmethod
    def _ascends(cls, interval: tuple[float, float]) -> tuple[float, float]:
        if interval[0] > interval[1]:
            raise ValueError("write [smallest, largest]")
        return interval


class StrongSettings(Section):
    """Settings of strong views, for stages that use them: the whole image, changed and with a square cut out."""

    operations: Annotated[int, Field(ge=0, le=14)] = 4  # drawn with replacement
    cutout: Fraction = 0.5  # the largest square's side, as a share of the view's


class NetworkSettings(Section):
    """The backbone, the two heads and the moving average that makes the target."""

    # whitened: learns from the features of a pretrained network (`start`) instead of images
    backbone: Literal["resnet18", "resnet34", "resnet50", "resnet-small", "whitened"] = "resnet18"
    stem: Literal["imagenet", "small"] = "small"
    width: Annotated[float, Field(ge=1 / 16, le=16.0)] = 1.0  # the backbone's width, relative to the standard one
    hidden: Width = 4096
    dimension: Annotated[Width, Field(ge=2)] = 256
    momentum: Fraction = 0.996
    momentum_schedule: Literal["constant", "cosine"] = "constant"
    joint_views: bool = False  # both views in one pass, so that batch norm sees them together
    bn_groups: Count = 1  # batch norm splits the batch of all processes into this many groups (the paper's recipes: 4)
    shuffle_bn: bool = False  # the target network's groups are of the shuffled batch
    components: Width = 64  # of whitened features: number of principal components,
    whitening: Fraction = 0.5  # and the power of its standard deviation by which each is divided


class StartSettings(Section):
    """The pretrained network; without one, training starts from scratch."""

    network: str | None = None
    weights: str | None = None  # a file of weights, instead of the installed package's
    sha256: str | None = None  # of the weights' file
    # Of a network of the hub: its architecture, preprocessing, training data and licence, as JSON.
    description: Annotated[str, Field(max_length=20_000)] | None = None
    learns: Literal["nothing", "last", "all"] = (
        "nothing"  # what is trained: nothing, the last stage, or all of the network
    )
    norms: Literal["kept", "learnt"] = "kept"  # batch norm's statistics, if the network is trained

    @property
    def has_frozen_part(self) -> bool:
        """True if a frozen part of the network computes features, on which the rest is trained."""
        return self.network is not None and self.learns != "all"


class SuggestSettings(Section):
    """The range from which K is chosen when PSL starts; once K is known, the range says that it was suggested."""

    by: Literal["stability", "autopropos"] = "stability"
    range: tuple[Annotated[int, Field(ge=2)], Annotated[int, Field(ge=2)]] | None = None

    @field_validator("range")
    @classmethod
    def _ascends(cls, interval: tuple[int, int] | None) -> tuple[int, int] | None:
        if interval is not None and interval[0] > interval[1]:
            raise ValueError("write [smallest, largest]")
        return interval


class EstepSettings(Section):
    """Embedding and clustering all images; `streamed` reuses the embeddings of the epoch's views."""

    embeddings: Literal["fresh", "streamed"] = "fresh"
    every: Count = 1
    restarts: Count = 10
    # Without trained heads: k-means starts from clusters of images averaged with this many neighbours; 0: off.
    averaged: Annotated[int, Field(ge=0, le=1000)] = 0


class TrainSettings(Section):
    """The optimiser and its schedule; `lr` is for 256 images and scales with the batch."""

    epochs: Count = 1000
    batch_size: Annotated[int, Field(ge=2)] = 256
    accumulate: Count = 1
    balanced: bool = False  # sample images so that all clusters are equally frequent, from the first epoch on
    optimiser: Literal["sgd", "adam", "adamw", "lars"] = "sgd"
    lr: Positive = 0.05
    # After the warm-up: a cosine to 0 at the end; one as long as all epochs, which stops short of 0; one that began
    # with the first epoch and changes with each, to which the warm-up rises; a tenth from each milestone on; or no
    # change.
    schedule: Literal["cosine", "cosine-of-all", "cosine-by-epoch", "steps", "constant"] = "cosine"
    milestones: tuple[Annotated[float, Field(gt=0.0, lt=1.0)], ...] = ()  # shares of the epochs, for `steps`
    warmup: Annotated[int, Field(ge=0)] = 50
    weight_decay: NotNegative = 5e-4
    decay_norms: bool = True  # weight decay on biases and batch norm too
    sgd_momentum: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.9
    precision: Literal["float32", "bfloat16", "float16"] = "float32"  # of the backbone; the rest is float32
    deterministic: bool = False  # bit-identical results on a GPU too, but slower
    compile: bool = False  # compile backbones and heads with torch.compile: minutes at the start, faster steps on a GPU
    recompute: bool = False  # recompute the backbone's activations in the backward pass: less memory
    checkpoint_minutes: Positive = 5.0


class LogSettings(Section):
    """Logs for other programs; they change no result."""

    tensorboard: bool = False  # curves and sheets of typical images, in the folder `tensorboard` of the run


class PixelSettings(Section):
    """The scale of pixel values: black and white as given, then the mean and std per channel of [0, 1] values."""

    black: Finite | None = None
    white: Finite | None = None
    mean: tuple[Finite, ...] | None = None
    std: tuple[Positive, ...] | None = None
