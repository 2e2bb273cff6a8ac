"""Pairs of inputs for methods that also learn from a pretrained network's features."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from propos.clustering import nearest_neighbours
from propos.methods.base import Batch, ViewKind
from propos.methods.images import AllImages
from propos.methods.setup import Setup
from propos.networks import Encoder, Memory, Neighbours

NEAREST = 10  # neighbours of which one replaces an image's second view


class Pairs(nn.Module):
    """Two random views of each image; for a pretrained network, an image and one of its nearest neighbours.

    The features of a frozen network are computed once, so there are no random views of them. Nine in ten neighbours
    are of the same class.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        self.setup = setup
        self.frozen = setup.start.network is not None and not setup.tuned
        self.neighbours, self.memory = Neighbours(setup.images), Memory()

    @staticmethod
    def stage_options(setup: Setup) -> dict[str, Any]:
        """Return the modules that a stage on such pairs trains, and when it computes tables."""
        if setup.start.network is None:
            return {}
        trains = ("online.backbone",) if setup.tuned else ("online.projector", "predictor")
        return {"trains": trains, "tables_every": 0}

    @property
    def symmetric(self) -> bool:
        """Whether both inputs are of the same image."""
        return self.setup.start.network is None

    def part(self, encoder: Encoder) -> nn.Module:
        """Return the part of an encoder that the inputs pass through."""
        return encoder.projector if self.frozen else encoder

    def inputs(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the inputs of a batch."""
        if self.symmetric:
            return batch.views()
        partners = batch.partners(self.neighbours)
        if self.frozen:
            features = self.memory["features"]
            return batch.rows(features), partners.rows(features)
        kind: ViewKind = "plain" if self.setup.start.learns == "last" else "random"
        return batch.view(kind, 0), partners.view(kind, 1)

    def make_tables(self, encoder: Encoder, images: AllImages) -> None:
        """Compute the tables that the pairs are drawn from."""
        if self.symmetric:
            return
        points = images.apply(encoder.backbone if self.frozen else encoder)
        if self.frozen:
            self.memory["features"] = points
        points = F.normalize(points, dim=1)
        local = nearest_neighbours(points, min(NEAREST, len(points) - 1), images.local)
        self.neighbours["table"] = images.gather(local)
