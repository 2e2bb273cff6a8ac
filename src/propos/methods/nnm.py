"""NNM: nearest neighbours, in the batch and among all images, share a cluster (Dang et al., CVPR 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering import nearest_neighbours
from propos.config import Count, NotNegative, Positive
from propos.losses import cluster_balance, cluster_matching, neighbour_agreement
from propos.methods.base import Batch, StepContext
from propos.methods.heads_training import (
    Tables,
    features_and_probabilities,
    heads_training,
    neighbours_and_itself,
    sum_over_heads,
)
from propos.methods.images import AllImages
from propos.methods.pretext import BuildsOn, PretextSettings, PretextShare
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import ClusterHeads, Mlp

GLOBAL_START = 1  # the epoch from which images are matched with all others: before it the heads are untrained


class Nnm(BuildsOn):
    """Match images with their neighbours, the nearest image in the batch and, later, the nearest of all images.

    Deviations from the public code: the nearest of all images is that of the image itself (there, shuffled rows are
    read by the numbers of images, so it is any image's), by the cosine of plain views (there of strong ones); the head
    and the epoch are chosen without labels.
    """

    class Settings(PretextSettings):
        """Neighbours and heads."""

        pretext: str = "simclr"
        pretext_share: PretextShare = 0.66
        neighbours: Count = 20
        heads: Count = 3  # the one with the lowest loss is chosen
        heads_lr: Positive = 1e-3  # the learning rate of the stage, for 256 images
        balance_weight: NotNegative = 5.0  # how strongly clusters are held to equal sizes

    year, reference = 2021, "Dang et al., CVPR"
    verified = "terms and settings against its public code"
    has_head = True
    at_scale: ClassVar[Mapping[str, Any]] = {"nnm.heads_lr": 1e-4}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        clusters, width = setup.clusters, self.online.features
        self.heads = ClusterHeads(lambda: Mlp(width, clusters), settings.heads)
        neighbours = 1 + min(settings.neighbours, setup.images - 1)
        probabilities = torch.float32, settings.heads, clusters
        self.tables = Tables(setup.images, table=(torch.int64, neighbours), nearest=probabilities)

    @classmethod
    def own_stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return the matching."""
        trains, train = ("pretext.online.backbone", "heads"), heads_training(settings.heads_lr)
        return (Stage("matching", 1.0, trains, train, tables_every=1, decides="head"),)

    def own_losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the losses of the pairs in the batch and, from the second epoch, with the nearest of all images."""
        a, b = batch.view("strong", 0), batch.partners(self.tables).view("strong", 1)
        features, of_neighbour = ctx.encode(self.online.backbone, a, b)
        logits = ctx.encode(self.heads, features, of_neighbour)
        self.update_target_statistics(ctx, a, b)
        logits += ctx.encode(self.heads, *ctx.encode(self.online.backbone, batch.view("strong", 2)))
        *logits, features = ctx.gather(*logits, features)
        image, neighbour, third = (each.softmax(dim=-1) for each in logits)
        pairs = pairs_to_match(image, neighbour, third, nearest_in_batch(features))
        losses = losses_of_pairs(*pairs)
        if self.settings.balance_weight:
            of_heads = [cluster_balance(first) for first in pairs[0].unbind(1)]
            losses["balance"] = self.settings.balance_weight * torch.stack(of_heads)
        if ctx.epoch >= GLOBAL_START:
            theirs = self.tables["nearest"][batch.images].repeat(4, 1, 1)
            with_all = losses_of_pairs(torch.cat(pairs), theirs)
            losses |= {f"all_{name}": of_heads for name, of_heads in with_all.items()}
        return sum_over_heads(self.heads, losses)

    def own_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Find each image's neighbours once, and before each epoch the probabilities of the nearest image."""
        features, probabilities = features_and_probabilities(images, self.embedder, self.online, self.heads)
        points = F.normalize(features, dim=1)
        if ctx.epoch == 0:
            table = neighbours_and_itself(points, self.settings.neighbours, images)
            self.tables["table"] = images.gather(table)
        nearest = nearest_neighbours(points, 1, images.local)[:, 0]
        self.tables["nearest"] = images.gather(probabilities[nearest])

    def own_end_epoch(self, ctx: StepContext) -> None:
        """Choose the head with the lowest loss."""
        self.heads.choose()

    def assign(self, features: Tensor) -> Tensor:
        """Return the logits of the chosen head."""
        return self.heads.pick(self.heads(features))


def nearest_in_batch(features: Float[Tensor, "B F"]) -> Int[Tensor, " B"]:
    """Return for each image of a batch the other one whose features are nearest by Euclidean distance."""
    features = features.detach()
    squares = features.square().sum(dim=1)
    distances = squares - 2 * features @ features.T  # of each row, less what is the same for all others
    return distances.fill_diagonal_(torch.inf).argmin(dim=1)


def pairs_to_match(
    image: Float[Tensor, "B H K"],
    neighbour: Float[Tensor, "B H K"],
    third: Float[Tensor, "B H K"],
    nearest: Int[Tensor, " B"],
) -> tuple[Float[Tensor, "2*B H K"], Float[Tensor, "2*B H K"]]:
    """Pair images with their neighbours, and their third views with the nearest image in the batch."""
    return torch.cat([image, third]), torch.cat([neighbour, image[nearest]])


def losses_of_pairs(first: Float[Tensor, "P H K"], second: Float[Tensor, "P H K"]) -> dict[str, Float[Tensor, " H"]]:
    """Return the agreement of pairs and the matching of their clusters, for each head."""
    pairs = list(zip(first.unbind(1), second.unbind(1), strict=True))
    return {
        "agreement": torch.stack([neighbour_agreement(*pair) for pair in pairs]),
        "clusters": torch.stack([cluster_matching(*pair) for pair in pairs]),
    }
