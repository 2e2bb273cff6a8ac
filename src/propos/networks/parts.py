"""Which parts a method's network has; the backbone comes from the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from propos.networks.decoder import Decoding
from propos.networks.discriminator import Discriminating
from propos.networks.heads import Head
from propos.networks.tuned import Tuning

PartName = Literal["backbone", "projector", "predictor", "cluster_head", "over_head", "decoder", "discriminator"]
EVERY_PART: tuple[PartName, ...] = get_args(PartName)
TargetKind = Literal["moving average", "stop-gradient", "none"]


@dataclass(frozen=True)
class Parts:
    """The heads of a network and where its targets come from.

    The targets of a moving average are a second encoder's; with stop-gradient they are the online projections
    without their gradient; with none, the online projections themselves. Without a predictor predictions are the
    projections; one that does not start small starts as torch's layers do. A cluster head reads the backbone's
    features, or the projections, and ends in a softmax; of several, one is chosen by its loss. A head's target is its
    moving average, which then answers. An over-clustering head beside it, or as many, reads the same, sorts into more
    clusters and never answers. A decoder makes images again from their embeddings. A discriminator asks whether
    what a cluster head says goes with what the backbone's first stage sees. Without a projector an image's embedding is
    what the backbone makes of it: its pixels, its whitened features, or, where a pretrained network is tuned, what that
    network makes by now.
    """

    projector: Head | None
    predictor: Head | None = None
    target: TargetKind = "none"
    cluster_head: Head | None = None
    over_head: Head | None = None
    heads: int = 1  # cluster heads of each kind
    head_target: bool = False
    predictor_starts_small: bool = True
    cluster_head_reads: Literal["features", "projections"] = "features"
    decoder: Decoding | None = None
    discriminator: Discriminating | None = None
    tuning: Tuning | None = None

    @property
    def begins_clustered(self) -> bool:
        """Whether its embeddings are, before anything has learnt, those of a pretrained network: clusters are there."""
        return self.tuning is not None or (self.projector is not None and self.projector.as_it_is)
