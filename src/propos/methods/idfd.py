"""IDFD (Tao et al., ICLR 2021): instance discrimination with a memory bank, and feature decorrelation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from propos.config import Fraction, NotNegative, Positive
from propos.losses import instance_softmax
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.networks import Bank, Mlp


class Idfd(Method):
    """Discriminate each image from the remembered embeddings of all others, and decorrelate the features."""

    class Settings(MethodSettings):
        """The temperatures of both losses, the bank, and the weight of the second loss."""

        temperature: Positive = 1.0
        bank_momentum: Fraction = 0.5
        decorrelation_weight: NotNegative = 1.0
        decorrelation_temperature: Positive = 2.0

    year, reference = 2021, "Tao et al., ICLR (arXiv 2106.00131)"
    verified = "terms and settings against its public code"
    defaults: ClassVar[Mapping[str, Any]] = {"network.bn_groups": 1, "network.shuffle_bn": False}
    at_scale: ClassVar[Mapping[str, Any]] = {
        "network.dimension": 128,
        "train.batch_size": 128,
        "train.lr": 0.06,
        "train.schedule": "steps",
        "train.milestones": (0.3, 0.475, 0.65, 0.825),
        "train.warmup": 0,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        dimension = setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, dimension))
        self.bank = Bank(setup.rows, dimension, settings.bank_momentum, setup.generator("bank"))

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return instance discrimination and feature decorrelation, each the mean of both views."""
        settings, bank = self.settings, self.bank["vectors"]
        za, zb = ctx.gather(*ctx.encode(self.online, *batch.views()))
        first, second = (instance_softmax(z, bank, batch.images, settings.temperature) for z in (za, zb))
        losses = {"instances": (first + second) / 2}
        if settings.decorrelation_weight:
            first, second = (feature_decorrelation(z, settings.decorrelation_temperature) for z in (za, zb))
            losses["decorrelation"] = settings.decorrelation_weight * ((first + second) / 2)
        ctx.report_embeddings(za, zb)
        both = F.normalize(za.detach(), dim=1) + F.normalize(zb.detach(), dim=1)
        ctx.after_backward(self.bank.move, batch.images, F.normalize(both, dim=1))
        return losses


def feature_decorrelation(embeddings: Float[Tensor, "B D"], temperature: float) -> Float[Tensor, ""]:
    """Discriminate each feature from all others: −mean_l log softmax_m(f_l·f_m / τ) at m = l.

    f_l is the l-th column of the normalised embeddings of a batch, itself normalised.
    """
    columns = F.normalize(F.normalize(embeddings, dim=1), dim=0)
    return F.cross_entropy(columns.T @ columns / temperature, torch.arange(columns.shape[1], device=columns.device))
