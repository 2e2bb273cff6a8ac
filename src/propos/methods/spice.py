"""SPICE: heads learn labels by prototypes, then the network labels that neighbours share (Niu et al., TIP 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.clustering import nearest_neighbours
from propos.config import Count, Positive
from propos.losses import balanced_cross_entropy, self_labelling
from propos.methods.base import Batch, StepContext
from propos.methods.heads_training import (
    Confidence,
    Tables,
    features_and_probabilities,
    heads_training,
    sum_over_heads,
)
from propos.methods.images import AllImages
from propos.methods.pretext import BuildsOn, PretextSettings, PretextShare
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import ClusterHeads, Mlp

CONFIDENT_SHARE = 0.5  # of the images that a cluster of equal size has: their mean is its prototype
AGREEMENT = 0.99  # of the images around one that have to share its label
CONFIDENCE = 0.95  # above which an image labels itself, whatever the settings' confidence
NETWORK_LR = 0.03  # for any batch size
HEADS, NETWORK = 1 / 3, 2 / 3  # of the epochs after the pretext
WEAK_CROP = 0.77  # of an image's area: what is left of 32 × 32 pixels moved by up to 4


class Spice(BuildsOn):
    """Let heads learn the images nearest to their most confident ones; then train the network on labels that agree.

    While heads are trained the network is frozen; later it also labels its own confident images. Deviations from the
    public code: labels are found among all images, from plain views, before each epoch; the images whose labels agree
    are not cut to the size of the smallest cluster but weighted as if they were, and are drawn like all others; the
    network continues from the one that the heads were trained on, and decides itself, not its moving average.
    """

    class Settings(PretextSettings):
        """Heads and labels."""

        pretext: str = "moco"
        pretext_share: PretextShare = 0.5
        heads: Count = 10  # the one with the lowest loss is chosen
        heads_lr: Positive = 1e-2  # the learning rate of the heads' stage, for 256 images
        neighbours: Count = 10  # of which, the image included, labels have to agree
        confidence: Confidence = 0.99  # above which an assignment becomes a label,
        confidence_per_cluster: bool = True  # or less, where a cluster has fewer confident images than others

    year, reference = 2022, "Niu et al., TIP (arXiv 2103.09382)"
    verified = "labels and settings against its public code; see the docs"
    has_head = True
    at_scale: ClassVar[Mapping[str, Any]] = {"spice.confidence_per_cluster": False, "spice.neighbours": 100}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        clusters, width = setup.clusters, self.online.features
        self.heads = ClusterHeads(lambda: Mlp(width, width, clusters, norm=False), settings.heads)
        several = torch.bool, settings.heads, clusters
        self.tables = Tables(setup.images, {"labels": clusters}, prototype_labels=several, labels=(torch.int64,))

    @classmethod
    def own_stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return the training of the heads and that of the network."""
        of_heads = {**heads_training(settings.heads_lr), "weight_decay": 0.0}
        of_network = {
            "optimiser": "sgd",
            "lr": NETWORK_LR * 256 / setup.train.batch_size,
            "schedule": "cosine",
            "warmup": 0,
            "weight_decay": 5e-4,
            "decay_norms": False,
        }
        trains = ("pretext.online.backbone", "heads")
        return (
            Stage("heads", HEADS, ("heads",), of_heads, tables_every=1, decides="head"),
            Stage("network", NETWORK, trains, of_network, tables_every=0, decides="head"),
        )

    def own_losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the losses of the stage."""
        return self._of_heads(batch, ctx) if ctx.stage.name == "heads" else self._of_network(batch, ctx)

    def own_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Label the images nearest to each prototype, or the images whose neighbours have the same label."""
        features, probabilities = features_and_probabilities(images, self.embedder, self.online, self.heads)
        points = F.normalize(features, dim=1)
        if ctx.stage.name == "heads":
            labels = [prototype_labels(points, each, CONFIDENT_SHARE) for each in probabilities.unbind(1)]
            self.tables["prototype_labels"] = torch.stack(labels, dim=1)
        else:
            neighbours = min(self.settings.neighbours, len(points)) - 1
            near, chosen = nearest_neighbours(points, neighbours, images.local), self.heads.pick(probabilities)
            local = agreed_labels(chosen, near, images.local, AGREEMENT, self.settings.confidence)
            self.tables["labels"] = images.gather(local)

    def own_end_epoch(self, ctx: StepContext) -> None:
        """Choose the head with the lowest loss."""
        if ctx.stage.name == "heads":
            self.heads.choose()

    def assign(self, features: Tensor) -> Tensor:
        """Return the logits of the chosen head."""
        return self.heads.pick(self.heads(features))

    def _of_heads(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the classification of both views into each head's labels, summed over the heads."""
        logits = self._logits(ctx, batch.view("strong", 0), batch.view("strong", 1))
        first, second = (each.softmax(dim=-1) for each in ctx.gather(*logits))
        labels = self.tables["prototype_labels"][batch.images]
        of_heads = (several_labels(first, labels) + several_labels(second, labels)) / 2
        return sum_over_heads(self.heads, {"labels": of_heads})

    def _of_network(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the classification of weak views into agreed labels, and of strong ones into confident ones."""
        settings, (smallest, largest) = self.settings, self.setup.views.crop_scale
        crop_scale = (min(max(smallest, WEAK_CROP), largest), largest)
        gentle = {"crop_scale": crop_scale, "jitter": 0.0, "grey": 0.0, "blur": (0.0, 0.0)}
        a, b = batch.view("random", 0, **gentle), batch.view("strong", 1, **gentle)
        logits = self._logits(ctx, a, b)
        self.update_target_statistics(ctx, a, b)
        weak, strong = (self.heads.pick(each).softmax(dim=-1) for each in ctx.gather(*logits))
        threshold = min(CONFIDENCE, settings.confidence)
        return {
            "labels": balanced_cross_entropy(weak, self.tables["labels"][batch.images]),
            "own_labels": self_labelling(weak, strong, threshold, settings.confidence_per_cluster),
        }

    def _logits(self, ctx: StepContext, *views: Tensor) -> list[Tensor]:
        return ctx.encode(self.heads, *ctx.encode(self.online.backbone, *views))


def prototype_labels(
    points: Float[Tensor, "N F"], probabilities: Float[Tensor, "N K"], share: float
) -> Bool[Tensor, "N K"]:
    """Return which images are nearest to the prototype of each cluster, equally many for each.

    A prototype is the mean of the unit vectors of the cluster's most confident images, a share of N / K; the N / K
    images nearest to it are labelled. An image may have several labels, or none.
    """
    even = max(1, len(points) // probabilities.shape[1])
    confident = probabilities.topk(max(1, int(share * even)), dim=0).indices
    cosines = points @ points[confident].mean(dim=0).T
    nearest = cosines.topk(even, dim=0).indices
    return torch.zeros_like(cosines, dtype=torch.bool).scatter(0, nearest, value=True)


def agreed_labels(
    probabilities: Float[Tensor, "N K"], neighbours: Int[Tensor, "n count"], rows: slice, share: float, threshold: float
) -> Int[Tensor, " n"]:
    """Return the clusters of some rows' images that are confident and whose neighbours share them; -1 elsewhere.

    Of the image and its neighbours together, a share has to be assigned to the same cluster.
    """
    confidence, cluster = probabilities.max(dim=1)
    alike = 1 + (cluster[neighbours] == cluster[rows, None]).sum(dim=1)
    agreed = (alike >= share * (1 + neighbours.shape[1])) & (confidence[rows] > threshold)
    return torch.where(agreed, cluster[rows], -1)


def several_labels(probabilities: Float[Tensor, "B H K"], labels: Bool[Tensor, "B H K"]) -> Float[Tensor, " H"]:
    """Return −log softmax(p) at each label of each image, averaged over all labels of a head; 0 without any.

    p is a softmax itself, so the odds of two clusters never exceed e, and a wrong label costs little more than a right
    one.
    """
    losses = -F.log_softmax(probabilities, dim=-1)
    return (losses * labels).sum(dim=(0, 2)) / labels.sum(dim=(0, 2)).clamp(min=1)
