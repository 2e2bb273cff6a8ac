"""MoCo, first version (He et al., CVPR 2020): a query contrasted with a queue of keys of a slowly moving encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from propos.config import Count, Positive
from propos.losses import info_nce
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.networks import EmaCopy, Encoder, Mlp, Queue


class MoCoV1(Method):
    """Contrast one view of each image with the key of the other and the keys of earlier batches; queries embed.

    Unlike `moco`, the second version: a linear projector, a temperature of 0.07, weaker views, one direction.
    """

    class Settings(MethodSettings):
        """The contrast's temperature and negatives."""

        temperature: Positive = 0.07
        queue_size: Count = 4096

    title = "MoCo v1"
    year, reference = 2020, "He et al., CVPR (arXiv 1911.05722)"
    verified = "the loss and settings against its public code"
    defaults: ClassVar[Mapping[str, Any]] = {
        "network.momentum": 0.99,
        "network.bn_groups": 4,
        "network.shuffle_bn": True,
        "train.weight_decay": 1e-4,
    }
    at_scale: ClassVar[Mapping[str, Any]] = {
        "moco-v1.queue_size": 65536,
        "network.momentum": 0.999,
        "network.dimension": 128,
        "views.crop_scale": (0.2, 1.0),
        "views.jitter": 1.0,
        "views.hue": 0.4,
        "train.batch_size": 256,
        "train.lr": 0.03,
        "train.schedule": "steps",
        "train.milestones": (0.6, 0.8),
        "train.warmup": 0,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        dimension = setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, dimension))
        self.target: EmaCopy[Encoder] = EmaCopy(self.online)
        self.queue = Queue(settings.queue_size, dimension, setup.rows, setup.generator("queue"))

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return InfoNCE of the first view and the second view's key."""
        a, b = batch.views()
        (q,) = ctx.encode(self.online, a)
        (k,) = ctx.encode(self.target, b, shuffled=True)
        q, k = ctx.gather(q, k)
        ctx.report_embeddings(q)
        ctx.after_backward(self.queue.push, k, batch.images)
        return {"contrast": info_nce(q, k, self.queue["vectors"], self.settings.temperature)}

    def after_step(self, ctx: StepContext) -> None:
        """Move the key encoder."""
        self.target.move(ctx.momentum)
