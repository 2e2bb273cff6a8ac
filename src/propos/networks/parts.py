"""Which parts a method's network has; the backbone comes from the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from propos.networks.heads import Head

PartName = Literal["backbone", "projector", "predictor", "cluster_head"]
EVERY_PART: tuple[PartName, ...] = ("backbone", "projector", "predictor", "cluster_head")
TargetKind = Literal["moving average", "stop-gradient", "none"]


@dataclass(frozen=True)
class Parts:
    """The heads of a network and where its targets come from.

    The targets of a moving average are a second encoder's; with stop-gradient they are the online projections
    without their gradient; with none, the online projections themselves. Without a predictor predictions are the
    projections; one that does not start small starts as torch's layers do. A cluster head reads the backbone's features
    and ends in a softmax. Without a projector there is no network at all: an image's embedding is its pixels.
    """

    projector: Head | None
    predictor: Head | None = None
    target: TargetKind = "none"
    cluster_head: Head | None = None
    predictor_starts_small: bool = True
