"""PCL (Li et al., ICLR 2021): MoCo, and each image contrasted with the prototypes of several clusterings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from propos.config import Count, NotNegative, Positive
from propos.losses import info_nce
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.clusterings import Clusterings, Negatives, Numbers, check_clusters, starts_after_warmup
from propos.methods.images import Clustered
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import EmaCopy, Encoder, Mlp, Queue


class Pcl(Method):
    """Contrast each image with the keys of earlier batches and, after the warm-up, with prototypes; the keys embed.

    Prototypes are the centres of several clusterings, of different numbers of clusters. Each has a temperature of its
    own, its concentration: low for tight clusters.

    Deviations from the public code: losses of both directions; the prototypes of a batch are those of all processes.
    """

    class Settings(MethodSettings):
        """MoCo's temperature and queue, and the clusterings."""

        temperature: Positive = 1.0
        queue_size: Count = 4096
        # Prototypes drawn from those that no image of the batch belongs to, as in the public code; 0: all, each once.
        negatives: Annotated[int, Field(ge=0, le=10**9)] = 0
        prototypes_weight: NotNegative = 0.01
        clusters: Numbers = (250, 500, 1000)  # of each clustering
        concentration: Positive = 1.0  # the mean of the prototypes' temperatures

    year, reference = 2021, "Li et al., ICLR (arXiv 2005.04966)"
    verified = "settings as ProPos's paper has them; the contrast with prototypes against its public code"
    # As MoCo: keys are always shuffled.
    defaults: ClassVar[Mapping[str, Any]] = {
        "network.momentum": 0.99,
        "network.bn_groups": 4,
        "network.shuffle_bn": True,
        "train.weight_decay": 1e-4,
    }
    at_scale: ClassVar[Mapping[str, Any]] = {"train.batch_size": 512, "pcl.negatives": 4096}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        self.online = setup.encoder(lambda width: Mlp(width, width, setup.network.dimension, norm=False))
        self.target: EmaCopy[Encoder] = EmaCopy(self.online)
        self.queue = Queue(settings.queue_size, setup.network.dimension, setup.rows, setup.generator("queue"))
        self.clusterings = Clusterings(settings.clusters, setup.images, setup.network.dimension)

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        return (
            Stage(first_clusters=setup.train.warmup, starts=starts_after_warmup(settings.prototypes_weight, setup)),
        )

    @classmethod
    def check(cls, settings: Settings, setup: Setup, distinct: Callable[[int], int]) -> None:
        """Refuse more clusters than there are different images."""
        check_clusters(settings.clusters, "pcl.clusters", distinct)

    @property
    def embedder(self) -> Encoder:
        """The key encoder."""
        return self.target.module

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return InfoNCE of both directions, summed, and ProtoNCE once there are clusterings."""
        settings = self.settings
        a, b = batch.views()
        qa, qb = ctx.encode(self.online, a, b)
        ka, kb = ctx.encode(self.target, a, b, shuffled=True)
        drawing = self._starts(ctx) and batch.clustered and bool(settings.negatives)
        draws = self.clusterings.draws(ctx, qa) if drawing else []
        qa, qb, ka, kb, *draws = ctx.gather(qa, qb, ka, kb, *draws)
        ctx.report_embeddings(ka, kb)
        ctx.after_backward(self.queue.push, torch.cat([ka, kb]), batch.images.repeat(2))
        shared = self.queue["vectors"], settings.temperature
        losses = {"contrast": info_nce(qa, kb, *shared) + info_nce(qb, ka, *shared)}
        if self._starts(ctx) and batch.clustered:
            negatives = Negatives(settings.negatives, draws[0]) if draws else None
            contrast = self.clusterings.contrast(batch.images, qa, qb, negatives=negatives)
            losses["prototypes"] = settings.prototypes_weight * contrast
        return losses

    def _starts(self, ctx: StepContext) -> bool:
        """Return whether prototypes take part."""
        return bool(self.settings.prototypes_weight) and ctx.epoch >= self.setup.train.warmup

    def after_clustering(self, clustered: Clustered, ctx: StepContext) -> None:
        """Find the clusterings, from the end of the warm-up on."""
        if ctx.epoch >= self.setup.train.warmup:
            self.clusterings.find(clustered, self.settings.concentration)

    def after_step(self, ctx: StepContext) -> None:
        """Move the key encoder."""
        self.target.move(ctx.momentum)
