"""CDC (Jia et al., ICLR 2025): a calibrated head says which labels the cluster head may learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from propos.clustering import spherical_kmeans
from propos.config import Count, NotNegative, Positive
from propos.losses import cluster_balance, log_prob
from propos.methods.base import Batch, StepContext
from propos.methods.heads_training import heads_training
from propos.methods.images import AllImages
from propos.methods.pretext import BuildsOn, PretextSettings, PretextShare
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import Mlp

ITERATIONS = 10  # of k-means on a batch
SCALE, RATE, DECAY, MOMENTUM = 5.0, 0.1, 1e-4, 0.9  # of the training that spreads initial weights
RESTARTS = 3  # of k-means for the initial weights

Share = Annotated[float, Field(gt=0.0, le=1.0)]


class Cdc(BuildsOn):
    """Let a calibration head choose confident labels for the cluster head, and learn from the latter's averages.

    Both heads start from k-means on the features, spread. Deviations from the public code: labels and averages are of
    each batch (there of 1,000 images for two steps of 500); k-means by direction, on batches ten iterations from random
    images; where images are fewer than a head's width, the rest of its weights stay random; both heads are in one
    optimiser. The last epoch counts (there the most accurate).
    """

    class Settings(PretextSettings):
        """The heads' learning rate, the clusters of a batch and what initial weights take."""

        pretext: str = "moco"
        pretext_share: PretextShare = 0.7
        heads_lr: Positive = 1e-3  # the learning rate of both heads and the backbone, for 256 images
        super_clusters: Share = 0.5  # clusters of a batch over which predictions are averaged, for each image
        balance_weight: NotNegative = 1.0  # how strongly the calibration head's clusters are held to equal sizes
        spreading: Count = 200  # steps in which initial weights are spread

    year, reference = 2025, "Jia et al., ICLR"
    verified = "losses, labels, initial weights and settings against its public code"
    has_head = True
    at_scale: ClassVar[Mapping[str, Any]] = {"cdc.heads_lr": 1e-4 * 256 / 500, "cdc.spreading": 2000}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        sizes = self.online.features, min(setup.network.hidden, 512), setup.clusters
        self.head, self.calibration = Mlp(*sizes), Mlp(*sizes)

    @classmethod
    def own_stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage, before which the heads get their initial weights."""
        trains = ("pretext.online.backbone", "head", "calibration")
        train = {**heads_training(settings.heads_lr), "weight_decay": 0.0}
        return (Stage("calibrating", 1.0, trains, train, tables_every=0, decides="head"),)

    def own_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Set the initial weights of both heads."""
        features = images.apply(self.online.backbone)
        features = features[features.any(dim=1)]
        first, last = (layer for layer in self.head if isinstance(layer, nn.Linear))
        draw = self.setup.generator("prototypes")
        weights = prototypes_of(features, len(first.weight), draw)
        hidden = (features @ weights.T).relu()
        of_clusters = prototypes_of(hidden, len(last.weight), draw)
        for head in (self.head, self.calibration):
            for layer, made in zip((m for m in head if isinstance(m, nn.Linear)), (weights, of_clusters), strict=True):
                _set(layer, spread(made, self.settings.spreading))

    def own_losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the cluster head's classification, the calibration head's agreement, and its balance."""
        backbone, plain, strong = self.online.backbone, batch.view("plain"), batch.view("strong", 1)
        with torch.no_grad():  # with the batch's statistics, as in training: the same on every process
            features, weak = ctx.encode(backbone, plain, batch.view("random", 0, jitter=0.0, grey=0.0))
            made = *ctx.encode(self.head, features), *ctx.encode(self.calibration, weak)
        (logits,) = ctx.encode(self.head, *ctx.encode(backbone, strong))
        (calibrated,) = ctx.encode(self.calibration, features)
        self.update_target_statistics(ctx, strong)
        features, predicted, labelled, logits, calibrated = ctx.gather(features, *made, logits, calibrated)
        chosen = labelled.softmax(dim=1)
        clusters = max(1, round(self.settings.super_clusters * len(features)))
        targets = averaged(predicted.softmax(dim=1), cluster_of(features, clusters))
        balance = cluster_balance(calibrated.softmax(dim=1))
        return {
            "labels": labels_of_confident(logits, chosen.argmax(dim=1), calibrated_choice(chosen)),
            "agreement": -(targets * log_prob(calibrated.softmax(dim=1))).sum(dim=1).mean(),
            "balance": self.settings.balance_weight * balance,
        }

    def assign(self, features: Tensor) -> Tensor:
        """Return the cluster head's logits."""
        logits: Tensor = self.head(features)
        return logits


@torch.no_grad()
def calibrated_choice(probabilities: Float[Tensor, "B K"]) -> Bool[Tensor, " B"]:
    """Return which images are given a label: of each cluster as many as its calibrated confidence allows.

    The B / K images with the highest probability of the cluster are considered; the first of them are taken, their
    share being the mean of their largest probabilities.
    """
    images, clusters = probabilities.shape
    considered = max(1, images // clusters)
    ranked = probabilities.argsort(dim=0, descending=True, stable=True)[:considered]
    count = (probabilities.max(dim=1).values[ranked].mean(dim=0) * considered).long()
    taken = torch.arange(considered, device=ranked.device)[:, None] < count
    votes = torch.zeros(images, device=ranked.device).index_add(0, ranked.flatten(), taken.flatten().float())
    return votes > 0


def labels_of_confident(
    logits: Float[Tensor, "B K"], labels: Int[Tensor, " B"], chosen: Bool[Tensor, " B"]
) -> Float[Tensor, ""]:
    """Return −mean log p_i at the labels of the images that are chosen; 0 without any."""
    each = F.cross_entropy(logits, labels, reduction="none")
    return (each * chosen).sum() / chosen.sum().clamp(min=1)


@torch.no_grad()
def averaged(probabilities: Float[Tensor, "B K"], clusters: Int[Tensor, " B"]) -> Float[Tensor, "B K"]:
    """Return for each image the mean of the predictions of its cluster of the batch."""
    alike = (clusters[:, None] == clusters).to(probabilities.dtype)
    return alike @ probabilities / alike.sum(dim=1, keepdim=True)


@torch.no_grad()
def cluster_of(features: Float[Tensor, "B F"], clusters: int) -> Int[Tensor, " B"]:
    """Return each image's cluster within its batch: Lloyd's iterations from the first images of the batch."""
    points = F.normalize(features, dim=1)
    centres = points[:clusters]
    for _ in range(ITERATIONS):
        nearest = (points @ centres.T).argmax(dim=1)
        centres = F.normalize(torch.zeros_like(centres).index_add(0, nearest, points), dim=1)
    return (points @ centres.T).argmax(dim=1)


def prototypes_of(points: Float[Tensor, "N F"], count: int, draw: torch.Generator) -> Float[Tensor, "M F"]:
    """Return the centres of a clustering of standardised points; no more than half as many as points."""
    standard = (points - points.mean(dim=1, keepdim=True)) / points.std(dim=1, keepdim=True).clamp(min=1e-6)
    clusters = min(count, max(1, len(points) // 2))
    return spherical_kmeans(F.normalize(standard, dim=1), clusters, RESTARTS, draw).centres


@torch.enable_grad()
def spread(weights: Float[Tensor, "M F"], steps: int) -> Float[Tensor, "M F"]:
    """Move weights apart: train them, and points that start from them, to classify each point as itself.

    Cross-entropy of 5 · cos(relu(z_i), w_j), by SGD with a cosine from 0.1 to 0.
    """
    points, moved = weights.clone().requires_grad_(), weights.clone().requires_grad_()
    optimiser = torch.optim.SGD([points, moved], lr=RATE, momentum=MOMENTUM, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=steps)
    number = torch.arange(len(weights), device=weights.device)
    for _ in range(steps):
        cosines = F.normalize(points.relu(), dim=1) @ F.normalize(moved, dim=1).T
        optimiser.zero_grad()
        F.cross_entropy(SCALE * cosines, number).backward()
        optimiser.step()
        schedule.step()
    return moved.detach()


@torch.no_grad()
def _set(layer: nn.Linear, weights: Float[Tensor, "m f"]) -> None:
    """Set the first rows and columns of a layer's weights, and its bias to 0."""
    rows, columns = weights.shape
    layer.weight[:rows, :columns] = weights
    layer.bias.zero_()
