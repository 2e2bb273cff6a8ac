"""TCL: contrastive clustering of weak and strong views, then of its most confident labels (Li et al., IJCV 2022)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.config import Positive
from propos.losses import balanced_cross_entropy, cluster_balance, cluster_contrast, nt_xent
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.heads_training import Confidence, Tables
from propos.methods.images import AllImages
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import Mlp

TRAINING, BOOSTING = 1000, 200  # epochs of the two stages
LABELLED = 0.5  # γ: the share of the images that may have a label at once


class Tcl(Method):
    """Contrast images and clusters of weak and strong views; then learn the labels of the most confident images.

    Images with the same label are then no negatives of each other. Deviations from the public code: labels are computed
    again before each epoch, of all images (there in each step, of the batch); the layer that both heads read first is
    each head's own; cluster heads start as torch's layers do; there are labels for all clusters, and they are given to
    the images they were found for.
    """

    class Settings(MethodSettings):
        """The temperatures of both contrasts, and labels."""

        temperature: Positive = 0.5
        cluster_temperature: Positive = 1.0
        confidence: Confidence = 0.99  # below which an image loses its label

    year, reference = 2022, "Li et al., IJCV"
    verified = "losses, labels and settings against its public code; see the docs"
    has_head = True
    defaults: ClassVar[Mapping[str, Any]] = {
        "train.optimiser": "adam",
        "train.lr": 1e-3,
        "train.schedule": "constant",
        "train.warmup": 0,
        "train.weight_decay": 1e-4,
        "network.bn_groups": 1,
        "network.shuffle_bn": False,
    }
    at_scale: ClassVar[Mapping[str, Any]] = {"network.dimension": 128, "train.lr": 1e-4}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        self.online = setup.encoder(lambda width: Mlp(width, width, width, setup.network.dimension))
        width = self.online.features
        self.head = Mlp(width, width, width, setup.clusters)
        self.tables = Tables(setup.images, {"labels": setup.clusters}, labels=(torch.int64,))

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return the contrast, and the boost by labels."""
        return (
            Stage(share=TRAINING, decides="head"),
            Stage("boost", BOOSTING, tables_every=1, decides="head"),
        )

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the contrasts and the balance; in the second stage, the contrast by labels and the cross-entropy."""
        settings = self.settings
        weak, strong = batch.view("random", 0), batch.view("strong", 1)
        features = ctx.encode(self.online.backbone, weak, strong)
        projections = ctx.encode(self.online.projector, *features)
        za, zb, *logits = ctx.gather(*projections, *ctx.encode(self.head, *features))
        pa, pb = (each.softmax(dim=1) for each in logits)
        if ctx.stage.name == "boost":
            labels = self.tables["labels"][batch.images]
            return {
                "contrast": labelled_contrast(za, zb, labels, settings.temperature),
                "labels": balanced_cross_entropy(pb, labels),
            }
        return {
            "contrast": nt_xent(za, zb, settings.temperature),
            "cluster_contrast": cluster_contrast(pa, pb, settings.cluster_temperature),
            "cluster_balance": cluster_balance(pa) + cluster_balance(pb),
        }

    def make_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Label the most confident images of each cluster; images keep their labels while they are confident."""
        probabilities = images.apply(lambda view: self.head(self.online.backbone(view)).softmax(dim=1))
        before = None if ctx.epoch == 0 else self.tables["labels"]
        self.tables["labels"] = confident_images(probabilities, LABELLED, self.settings.confidence, before)

    def assign(self, features: Tensor) -> Tensor:
        """Return the head's logits."""
        logits: Tensor = self.head(features)
        return logits


def confident_images(
    probabilities: Float[Tensor, "N K"], share: float, threshold: float, before: Int[Tensor, " N"] | None = None
) -> Int[Tensor, " N"]:
    """Return a label for the most confident images of each cluster; -1 for others.

    Of each cluster as many are labelled as make, over all clusters of equal size, a share of the images. An image keeps
    the label that it had before, whatever its cluster is now, until its largest probability is below the threshold.
    """
    confidence, cluster = probabilities.max(dim=1)
    most = math.ceil(share * len(cluster) / probabilities.shape[1])
    labels = torch.where(ranks_in_cluster(confidence, cluster) < most, cluster, -1)
    if before is not None:
        labels = torch.where(before < 0, labels, before)
    return torch.where(confidence < threshold, -1, labels)


def ranks_in_cluster(confidence: Float[Tensor, " N"], cluster: Int[Tensor, " N"]) -> Int[Tensor, " N"]:
    """Return how many images of its cluster come before each, by falling confidence and then by position."""
    falling = confidence.argsort(descending=True, stable=True)
    order = falling[cluster[falling].argsort(stable=True)]  # cluster by cluster
    counts = torch.bincount(cluster)
    starts = counts.cumsum(dim=0) - counts
    ranks = torch.arange(len(order), device=order.device) - starts[cluster[order]]
    return torch.empty_like(order).index_copy(0, order, ranks)


def labelled_contrast(
    first: Float[Tensor, "B D"], second: Float[Tensor, "B D"], labels: Int[Tensor, " B"], temperature: float
) -> Float[Tensor, ""]:
    """Contrast each row's other view with the rows of images that do not have its label.

    −mean_i log exp(cos(z_i, z_i⁺)/τ) / Σ_j exp(cos(z_i, z_j)/τ), over z_i⁺ and all rows of other images except
    images with the label of i. The negatives of images labelled -1 are all others.
    """
    others = ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    alike = (labels[:, None] == labels) & (labels >= 0)[:, None] & others
    return nt_xent(first, second, temperature, alike)
