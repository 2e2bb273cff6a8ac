"""IFND (Chen et al., ICLR 2022): MoCo without the negatives that several clusterings put with an image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.config import Count, Positive
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.clusterings import Numbers, check_clusters
from propos.methods.images import Clustered
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import EmaCopy, Encoder, Memory, Mlp, Queue, labels_of

STEPS = 10**6  # in which confidences are compared: whole numbers are what processes share


class Ifnd(Method):
    """Contrast a view with the other view's key and a queue, from which likely images of the same kind are left out.

    An image has a label in each clustering once it is confident, more images from epoch to epoch; images with the same
    label in any clustering are no negatives. Its code and full text could not be read: from descriptions. Our reading:
    the share of images with a label grows linearly from 0 to 1; confidence is the softmax over the centres; the numbers
    of clusters are PCL's; MoCo's second version below.
    """

    class Settings(MethodSettings):
        """MoCo's temperature and queue, and the clusterings."""

        temperature: Positive = 0.2
        queue_size: Count = 4096
        clusters: Numbers = (250, 500, 1000)  # of each clustering

    year, reference = 2022, "Chen et al., ICLR (arXiv 2106.03719)"
    verified = "only against descriptions of its paper"
    defaults: ClassVar[Mapping[str, Any]] = {
        "network.momentum": 0.99,
        "network.bn_groups": 4,
        "network.shuffle_bn": True,
        "train.weight_decay": 1e-4,
    }
    at_scale: ClassVar[Mapping[str, Any]] = {
        "ifnd.queue_size": 65536,
        "network.momentum": 0.999,
        "network.dimension": 128,
        "train.batch_size": 256,
        "train.lr": 0.03,
        "train.warmup": 0,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        dimension = setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, width, dimension, norm=False))
        self.target: EmaCopy[Encoder] = EmaCopy(self.online)
        self.queue = Queue(settings.queue_size, dimension, setup.rows, setup.generator("queue"))
        unknown = torch.full((len(settings.clusters), setup.images), -1)
        self.memory = Memory({"labels": max(settings.clusters)}, labels=unknown)

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        return (Stage(first_clusters=1),)

    @classmethod
    def check(cls, settings: Settings, setup: Setup, distinct: Callable[[int], int]) -> None:
        """Refuse more clusters than there are different images."""
        check_clusters(settings.clusters, "ifnd.clusters", distinct)

    @property
    def embedder(self) -> Encoder:
        """The key encoder."""
        return self.target.module

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return InfoNCE without the likely false negatives."""
        a, b = batch.views()
        q, k = ctx.gather(*ctx.encode(self.online, a), *ctx.encode(self.target, b, shuffled=True))
        ctx.report_embeddings(k)
        excluded = share_a_label(batch.images, self.queue["images"], self.memory["labels"])
        ctx.after_backward(self.queue.push, k, batch.images)
        contrast = contrast_without(q, k, self.queue["vectors"], excluded, self.settings.temperature)
        return {"contrast": contrast}

    def after_clustering(self, clustered: Clustered, ctx: StepContext) -> None:
        """Find the clusterings, and label the images that are confident enough by now."""
        share = ctx.epoch / self.setup.train.epochs
        for place, number in enumerate(self.settings.clusters):
            labels, centres = clustered.kmeans(number, place, clustered.points, None)
            found = (clustered.points @ centres.T / self.settings.temperature).softmax(dim=1)
            confidence = found.gather(1, labels.clamp(min=0)[:, None])[:, 0]
            ranked = clustered.gather_labels((confidence * STEPS).long())
            whole = clustered.gather_labels(labels)
            self.memory["labels"][place] = torch.where(most_confident(ranked, share), whole, -1)

    def after_step(self, ctx: StepContext) -> None:
        """Move the key encoder."""
        self.target.move(ctx.momentum)


def most_confident(confidence: Int[Tensor, " N"], share: float) -> Bool[Tensor, " N"]:
    """Return which images are the most confident share; the earlier of ties."""
    ranks = confidence.argsort(descending=True, stable=True).argsort()
    return ranks < round(share * len(confidence))


def share_a_label(
    images: Int[Tensor, " B"], others: Int[Tensor, " Q"], clusterings: Int[Tensor, "C N"]
) -> Bool[Tensor, "B Q"]:
    """Return which pairs of images have the same label in any clustering, or are the same image; -1: no label."""
    shares = images[:, None] == others
    for labels in clusterings.unbind():
        own, theirs = labels_of(images, labels)[:, None], labels_of(others, labels)
        shares = shares | ((own == theirs) & (own >= 0))
    return shares


def contrast_without(
    query: Float[Tensor, "B D"],
    key: Float[Tensor, "B D"],
    negatives: Float[Tensor, "Q D"],
    excluded: Bool[Tensor, "B Q"],
    temperature: float,
) -> Float[Tensor, ""]:
    """Contrast each query's key with the negatives that are not excluded, as InfoNCE does with all.

    Queries and keys are normalised here, the negatives before. No gradient reaches the keys.
    """
    query, key = F.normalize(query, dim=1), F.normalize(key.detach(), dim=1)
    own = (query * key).sum(dim=1, keepdim=True)
    others = (query @ negatives.T).masked_fill(excluded, -torch.inf)
    logits = torch.cat([own, others], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(query), dtype=torch.long, device=query.device))
