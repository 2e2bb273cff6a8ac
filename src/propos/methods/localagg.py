"""LocalAgg: images are pulled to near ones that several clusterings put with them (Zhuang et al., ICCV 2019)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.common.errors import InputError
from propos.config import Count, Fraction, Positive
from propos.losses import instance_softmax
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.images import Clustered
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import Bank, Memory, Mlp, labels_of

CLUSTERINGS = 10  # an image's close neighbours share its cluster in any of them
BACKGROUND = 4096  # nearest images that they are compared with,
BACKGROUND_CLUSTERS = 96  # or as many as this number of clusters holds: 4,096 of ImageNet's images, in 30,000 clusters
ALONE = 0.05  # of the epochs (10 of 200) come before aggregation: instance discrimination first
SMALLEST = 1e-7  # added to a probability, so that its logarithm is finite


class LocalAgg(Method):
    """Discriminate images with a bank; then pull each to near ones that share a cluster with it in any clustering.

    Deviations from the public code: negatives are all other images, not a sample of them; clusterings are
    of the embeddings of plain images, not of the bank, and start from the previous ones; two views a step. Unverified:
    all but ImageNet, the only data it was released for; clusters and near images shrink with the data.
    """

    class Settings(MethodSettings):
        """The temperature, the bank and the number of clusters of the clusterings."""

        temperature: Positive = 0.07
        bank_momentum: Fraction = 0.5
        overclustering: Count = 30  # clusters of each clustering for each of K, at most one for two images

    title = "LocalAgg"
    year, reference = 2019, "Zhuang et al., ICCV (arXiv 1903.12355)"
    verified = "terms against its public code; see the docs"
    needs_clusters = True
    defaults: ClassVar[Mapping[str, Any]] = {"network.bn_groups": 1, "network.shuffle_bn": False}
    at_scale: ClassVar[Mapping[str, Any]] = {
        "network.dimension": 128,
        "train.batch_size": 128,
        "train.lr": 0.06,
        "train.schedule": "steps",
        "train.milestones": (0.8, 0.95),
        "train.warmup": 0,
        "train.weight_decay": 1e-4,
        "train.decay_norms": False,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        dimension, clusters = setup.network.dimension, self._clusters(settings, setup)
        self.online = setup.encoder(lambda width: Mlp(width, dimension))
        self.bank = Bank(setup.rows, dimension, settings.bank_momentum, setup.generator("bank"))
        self.clusterings = Memory(
            {"labels": clusters},
            labels=torch.full((CLUSTERINGS, setup.images), -1),
            centres=torch.zeros(CLUSTERINGS, clusters, dimension),
        )

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        return (Stage(first_clusters=cls._start(setup)),)

    @classmethod
    def check(cls, settings: Settings, setup: Setup, distinct: Callable[[int], int]) -> None:
        """Refuse more clusters than there are different images."""
        clusters = cls._clusters(settings, setup)
        different = distinct(clusters)
        if different < clusters:
            raise InputError(
                f"localagg.overclustering makes {clusters} clusters: only {different} images differ; "
                "set it smaller (--set localagg.overclustering=…)"
            )

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return instance discrimination in the first epochs, then local aggregation, each the mean of both views."""
        bank, temperature = self.bank["vectors"], self.settings.temperature
        za, zb = ctx.gather(*ctx.encode(self.online, *batch.views()))
        ctx.report_embeddings(za, zb)
        both = F.normalize(za.detach(), dim=1) + F.normalize(zb.detach(), dim=1)
        ctx.after_backward(self.bank.move, batch.images, F.normalize(both, dim=1))
        if ctx.epoch < self._start(self.setup):
            first, second = (instance_softmax(z, bank, batch.images, temperature) for z in (za, zb))
            return {"instances": (first + second) / 2}
        labels, near = self.clusterings["labels"], background(len(bank), self.clusterings["centres"].shape[1])
        first, second = (local_aggregation(z, bank, batch.images, labels, temperature, near) for z in (za, zb))
        return {"aggregation": (first + second) / 2}

    def after_clustering(self, clustered: Clustered, ctx: StepContext) -> None:
        """Find the clusterings, each from the centres that it had before."""
        if ctx.epoch < self._start(self.setup):
            return
        labels, centres = self.clusterings["labels"], self.clusterings["centres"]
        known = bool((labels >= 0).any())
        for number, before in enumerate(centres.unbind()):
            previous = before.to(clustered.points.device) if known else None
            local, found = clustered.kmeans(len(before), number, clustered.points, previous)
            labels[number], centres[number] = clustered.gather_labels(local), found

    @staticmethod
    def _clusters(settings: Settings, setup: Setup) -> int:
        """Return the number of clusters of each clustering."""
        assert setup.clusters is not None
        return min(settings.overclustering * setup.clusters, max(2, setup.images // 2))

    @staticmethod
    def _start(setup: Setup) -> int:
        """Return the first epoch with local aggregation."""
        epochs = setup.train.epochs
        return min(max(1, round(ALONE * epochs)), epochs - 1)


def background(images: int, clusters: int) -> int:
    """Return the number of near images that an image is compared with."""
    return max(1, min(BACKGROUND, round(images * BACKGROUND_CLUSTERS / clusters)))


def shares_a_cluster(
    rows: Int[Tensor, "B n"], images: Int[Tensor, " B"], clusterings: Int[Tensor, "C N"]
) -> Bool[Tensor, "B n"]:
    """Return which rows of a bank have an image's cluster in any of several clusterings; its own row always does.

    Rows after the clustered images, and rows labelled -1, are in no cluster.
    """
    shares = rows == images[:, None]
    for labels in clusterings.unbind():
        theirs, own = labels_of(rows, labels), labels_of(images[:, None], labels)
        shares = shares | ((theirs == own) & (own >= 0))
    return shares


def local_aggregation(
    embeddings: Float[Tensor, "B D"],
    bank: Float[Tensor, "N D"],
    images: Int[Tensor, " B"],
    clusterings: Int[Tensor, "C n"],
    temperature: float,
    background: int,
) -> Float[Tensor, ""]:
    """Pull each image to the near ones that share a cluster with it, relative to all near ones.

    −mean_i log( Σ_{j ∈ B_i ∩ C_i} e^{z_i·v_j/τ} / Σ_{j ∈ B_i} e^{z_i·v_j/τ} + 1e-7 ), B_i the `background` rows of the
    bank with the largest cosine, C_i the rows that share a cluster with the image. Embeddings are normalised here, the
    bank before. No gradient reaches the bank.
    """
    cosines = F.normalize(embeddings, dim=1) @ bank.T
    near, rows = cosines.topk(min(background, cosines.shape[1]), dim=1)
    close = shares_a_cluster(rows, images, clusterings)
    return -((F.softmax(near / temperature, dim=1) * close).sum(dim=1) + SMALLEST).log().mean()
