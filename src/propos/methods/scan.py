"""SCAN: neighbours share a cluster, then confident images label themselves (Van Gansbeke et al., ECCV 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from propos.config import Count, NotNegative, Positive
from propos.losses import cluster_balance, neighbour_agreement, self_labelling
from propos.methods.base import Batch, StepContext
from propos.methods.heads_training import Confidence, Tables, heads_training, neighbours_and_itself, sum_over_heads
from propos.methods.images import AllImages
from propos.methods.pretext import BuildsOn, PretextSettings, PretextShare
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import ClusterHeads, Mlp

# Shares of the steps after the pretext: on CIFAR-10, 50 epochs of 390 steps and 200 epochs of 50, about 2 : 1.
CLUSTERING, LABELLING = 2 / 3, 1 / 3


class Scan(BuildsOn):
    """Let heads assign each image to its neighbours' cluster, in clusters of equal size; then learn confident labels.

    Three stages: `pretext` (5/8 of the epochs; none with --from), `clustering` (1/4), `self-labelling` (1/8).

    Deviations from the public code:

    - heads are chosen by their training loss of the last epoch, not by a loss on test images;
    - labels come from the network in eval mode, not with the batch's statistics;
    - a batch without a confident image has no loss;
    - it trains on the images that it clusters, not on CIFAR-10's training images alone.
    """

    class Settings(PretextSettings):
        """Neighbours, heads and confident labels."""

        pretext: str = "simclr"
        pretext_share: PretextShare = 0.625
        neighbours: Count = 20
        heads: Count = 1  # the one with the lowest loss is chosen
        heads_lr: Positive = 1e-3  # the learning rate of clustering and self-labelling, for 256 images
        balance_weight: NotNegative = 5.0  # how strongly clusters are held to equal sizes
        confidence: Confidence = 0.99  # above it an assignment becomes a label
        confidence_per_cluster: bool = True  # lower the threshold for clusters with few confident images

    title = "SCAN"
    year, reference = 2020, "Van Gansbeke et al., ECCV (arXiv 2005.12320)"
    verified = "terms and settings against its public code"
    has_head = True
    at_scale: ClassVar[Mapping[str, Any]] = {"scan.heads_lr": 1e-4, "scan.confidence_per_cluster": False}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        clusters, width = setup.clusters, self.online.features
        self.heads = ClusterHeads(lambda: Mlp(width, clusters), settings.heads)
        self.tables = Tables(setup.images, table=(torch.int64, 1 + min(settings.neighbours, setup.images - 1)))

    @classmethod
    def display_name(cls, settings: Settings) -> str:
        """Return its title; SCAN itself has one threshold for all clusters."""
        return f"{cls.title} (thresholds per cluster)" if settings.confidence_per_cluster else cls.title

    @classmethod
    def own_stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return clustering and self-labelling."""
        trains = ("pretext.online.backbone", "heads")
        train = heads_training(settings.heads_lr)
        return (
            Stage("clustering", CLUSTERING, trains, train, tables_every=0, decides="head"),
            Stage("self-labelling", LABELLING, trains, train, decides="head"),
        )

    def own_losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the losses of the stage."""
        return self._clustering(batch, ctx) if ctx.stage.name == "clustering" else self._labelling(batch, ctx)

    def own_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Find each image's neighbours; column 0 is the image itself."""
        points = F.normalize(images.apply(self.embedder), dim=1)
        self.tables["table"] = images.gather(neighbours_and_itself(points, self.settings.neighbours, images))

    def own_end_epoch(self, ctx: StepContext) -> None:
        """Choose the head with the lowest loss."""
        if ctx.stage.name == "clustering":
            self.heads.choose()

    def assign(self, features: Tensor) -> Tensor:
        """Return the logits of the chosen head."""
        return self.heads.pick(self.heads(features))

    def _clustering(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the agreement of image and neighbour, −log p·p', and the weighted balance, summed over the heads."""
        a, b = batch.view("strong", 0), batch.partners(self.tables).view("strong", 1)
        logits = self._logits(ctx, a, b)
        self.update_target_statistics(ctx, a, b)
        of_image, of_neighbour = (each.softmax(dim=-1).unbind(1) for each in ctx.gather(*logits))
        agreement = [neighbour_agreement(p, q) for p, q in zip(of_image, of_neighbour, strict=True)]
        losses = {"agreement": torch.stack(agreement)}
        if self.settings.balance_weight:
            balance = torch.stack([cluster_balance(p) for p in of_image])
            losses["balance"] = self.settings.balance_weight * balance
        return sum_over_heads(self.heads, losses)

    def _labelling(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the classification of strong views into the confident labels of plain ones."""
        settings, strong_view = self.settings, batch.view("strong", 1)
        features = ctx.predict(self.online.backbone, batch.view("plain", 0))
        plain = ctx.predict(self.heads, features)
        (strong,) = self._logits(ctx, strong_view)
        self.update_target_statistics(ctx, strong_view)
        plain, strong = (self.heads.pick(each).softmax(dim=-1) for each in ctx.gather(plain, strong))
        return {"labels": self_labelling(plain, strong, settings.confidence, settings.confidence_per_cluster)}

    def _logits(self, ctx: StepContext, *views: Tensor) -> list[Tensor]:
        return ctx.encode(self.heads, *ctx.encode(self.online.backbone, *views))
