"""DeepCluster (Caron et al., ECCV 2018): k-means gives labels, the network learns them, k-means clusters it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering import whitened
from propos.common.errors import InputError
from propos.config import Count
from propos.losses import log_prob
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.images import Clustered
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import Memory, Mlp, labels_of


class DeepCluster(Method):
    """Cluster the images into many clusters and classify them by a head that is re-initialised after each clustering.

    The many clusters are found in whitened embeddings, and each is sampled equally often. The run's own clusters are
    those of k-means on the embeddings.
    """

    class Settings(MethodSettings):
        """The number of clusters that are learnt."""

        overclustering: Count = 10  # times the number of clusters, but never more than half of the images

    title = "DeepCluster"
    year, reference = 2018, "Caron et al., ECCV (arXiv 1807.05520)"
    verified = "steps against its public code; see the docs"
    needs_clusters = True
    defaults: ClassVar[Mapping[str, Any]] = {"network.bn_groups": 1, "network.shuffle_bn": False}
    at_scale: ClassVar[Mapping[str, Any]] = {
        "train.schedule": "constant",
        "train.warmup": 0,
        "train.weight_decay": 1e-5,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        hidden, dimension = setup.network.hidden, setup.network.dimension
        many = settings.overclustering * setup.clusters
        self.online = setup.encoder(lambda width: Mlp(width, hidden, dimension))
        self.head = Mlp(dimension, many, norm=False, relu_first=True)
        self.memory = Memory({"labels": many}, labels=torch.full((setup.images,), -1))

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage, which starts with a clustering."""
        return (Stage(first_clusters=0),)

    @classmethod
    def check(cls, settings: Settings, setup: Setup, distinct: Callable[[int], int]) -> None:
        """Refuse more clusters than different images."""
        many, key = cls._count(settings, setup), "deepcluster.overclustering"
        different = distinct(many)
        if different < many:
            raise InputError(
                f"{key} makes {many} clusters: only {different} images differ; set it smaller (--set {key}=…)"
            )

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the classification of both views into the clusters; images without one have no loss."""
        if not batch.clustered:
            return {}
        za, zb = ctx.encode(self.online, *batch.views())
        za, zb, la, lb = ctx.gather(za, zb, *ctx.encode(self.head, za, zb))
        ctx.report_embeddings(za, zb)
        labels = labels_of(batch.images, self.memory["labels"])
        first, second = (pseudo_label_loss(logits.softmax(dim=1), labels) for logits in (la, lb))
        return {"pseudo_labels": (first + second) / 2}

    def after_clustering(self, clustered: Clustered, ctx: StepContext) -> None:
        """Find the many clusters again, not from the previous ones: whitening has changed the axes."""
        points = whitened(clustered.points, sharded=clustered.sharded)
        labels, _ = clustered.kmeans(self._count(self.settings, self.setup), number=0, points=points, previous=None)
        self.memory["labels"] = clustered.gather_labels(labels)
        ctx.reinitialise(self.head)

    def sampling_labels(self) -> Int[Tensor, " N"] | None:
        """Return the many clusters, once there are any."""
        labels = self.memory["labels"]
        return labels if bool((labels >= 0).any()) else None

    @staticmethod
    def _count(settings: Settings, setup: Setup) -> int:
        assert setup.clusters is not None
        return min(settings.overclustering * setup.clusters, max(2, setup.images // 2))


def pseudo_label_loss(probabilities: Float[Tensor, "B M"], labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
    """Return −mean_i log p_i at each image's label; images labelled -1 take no part, and without any it is 0."""
    known = labels >= 0
    own = probabilities.gather(1, labels.clamp(min=0)[:, None])[:, 0]
    return torch.where(known, -log_prob(own), 0.0).sum() / known.sum().clamp(min=1)
