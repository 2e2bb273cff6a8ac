"""InstDisc (Wu et al., CVPR 2018): every image is a class of its own, by its place in a memory bank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.config import Fraction, NotNegative, Positive
from propos.losses import instance_softmax
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.networks import Bank, Mlp


class InstDisc(Method):
    """Recognise each image among the remembered embeddings of all images, from one view a step.

    Deviations from the public code: a softmax over all images, which its noise-contrastive estimation approximates with
    4,096 of them (`--nce-k 0` is the softmax there too). The paper's proximal term is off, as in that code.
    """

    class Settings(MethodSettings):
        """The temperature, the bank, and the weight λ of the proximal term."""

        temperature: Positive = 0.07
        bank_momentum: Fraction = 0.5
        proximal_weight: NotNegative = 0.0

    title = "InstDisc"
    year, reference = 2018, "Wu et al., CVPR (arXiv 1805.01978)"
    verified = "the loss and settings against its public code"
    defaults: ClassVar[Mapping[str, Any]] = {"network.bn_groups": 1, "network.shuffle_bn": False}
    at_scale: ClassVar[Mapping[str, Any]] = {
        "network.dimension": 128,
        "train.batch_size": 256,
        "train.lr": 0.03,
        "train.schedule": "steps",
        "train.milestones": (0.6, 0.8),
        "train.warmup": 0,
        "train.weight_decay": 1e-4,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        dimension = setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, dimension))
        self.bank = Bank(setup.rows, dimension, settings.bank_momentum, setup.generator("bank"))

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return instance discrimination and the weighted proximal term."""
        settings, bank = self.settings, self.bank["vectors"]
        (z,) = ctx.gather(*ctx.encode(self.online, batch.view("random")))
        losses = {"instances": instance_softmax(z, bank, batch.images, settings.temperature)}
        if settings.proximal_weight:
            losses["proximal"] = settings.proximal_weight * proximal(z, bank, batch.images)
        ctx.report_embeddings(z)
        ctx.after_backward(self.bank.move, batch.images, F.normalize(z.detach(), dim=1))
        return losses


def proximal(
    embeddings: Float[Tensor, "B D"], bank: Float[Tensor, "N D"], images: Int[Tensor, " B"]
) -> Float[Tensor, ""]:
    """Keep each embedding near the one that is remembered: mean_i ‖z_i − v_i‖², z and v unit vectors."""
    return (F.normalize(embeddings, dim=1) - bank[images]).square().sum(dim=1).mean()
