"""MoCo v2 (Chen et al., 2020): each image contrasted with a queue of earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from propos.config import Count, Positive
from propos.losses import info_nce
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.networks import EmaCopy, Encoder, Mlp, Queue


class MoCo(Method):
    """Contrast each image's other view with the keys of earlier batches; the key encoder embeds."""

    class Settings(MethodSettings):
        """The contrast's temperature and negatives."""

        temperature: Positive = 1.0
        queue_size: Count = 4096

    title = "MoCo"
    year, reference = 2020, "Chen et al. (arXiv 2003.04297)"
    verified = "settings as ProPos's paper has them"
    # Keys are always shuffled: batch norm's statistics, shared with its query, would give a key away.
    defaults: ClassVar[Mapping[str, Any]] = {
        "network.momentum": 0.99,
        "network.bn_groups": 4,
        "network.shuffle_bn": True,
        "train.weight_decay": 1e-4,
    }
    at_scale: ClassVar[Mapping[str, Any]] = {"train.batch_size": 512}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        self.online = setup.encoder(lambda width: Mlp(width, width, setup.network.dimension, norm=False))
        self.target: EmaCopy[Encoder] = EmaCopy(self.online)
        self.queue = Queue(settings.queue_size, setup.network.dimension, setup.rows, setup.generator("queue"))

    @property
    def embedder(self) -> Encoder:
        """The key encoder."""
        return self.target.module

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return InfoNCE of both directions, summed."""
        a, b = batch.views()
        qa, qb = ctx.encode(self.online, a, b)
        ka, kb = ctx.encode(self.target, a, b, shuffled=True)
        qa, qb, ka, kb = ctx.gather(qa, qb, ka, kb)
        negatives, temperature = self.queue["vectors"], self.settings.temperature
        ctx.report_embeddings(ka, kb)
        ctx.after_backward(self.queue.push, torch.cat([ka, kb]), batch.images.repeat(2))
        contrast = info_nce(qa, kb, negatives, temperature) + info_nce(qb, ka, negatives, temperature)
        return {"contrast": contrast}

    def after_step(self, ctx: StepContext) -> None:
        """Move the key encoder."""
        self.target.move(ctx.momentum)
