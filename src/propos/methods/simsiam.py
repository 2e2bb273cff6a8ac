"""SimSiam (Chen and He, CVPR 2021): alignment with a stop-gradient, without a moving average."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from propos.losses import symmetric
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.methods.stage import Rate, Stage
from propos.networks import Mlp


class SimSiam(Method):
    """Align each image with its other view; a stop-gradient and a predictor prevent collapse.

    The predictor narrows to a quarter of the width, and its learning rate is constant. The projector has two layers
    for small images and three for others, with batch norm on its output too.
    """

    title = "SimSiam"
    year, reference = 2021, "Chen and He, CVPR (arXiv 2011.10566)"
    verified = "settings as ProPos's paper has them"
    has_predictor = True
    # Each GPU normalises its own images, as in ProPos's training; without a target there is nothing to shuffle.
    defaults: ClassVar[Mapping[str, Any]] = {"network.shuffle_bn": False}
    at_scale: ClassVar[Mapping[str, Any]] = {
        "network.hidden": 2048,
        "network.dimension": 2048,
        "train.batch_size": 512,
        "train.lr": 0.03,
    }

    def __init__(self, settings: MethodSettings, setup: Setup) -> None:
        super().__init__(settings, setup)
        hidden, dimension = setup.network.hidden, setup.network.dimension
        between = (hidden,) if setup.network.stem == "small" else (hidden, hidden)
        self.online = setup.encoder(lambda width: Mlp(width, *between, dimension, norm_last=True))
        self.predictor: nn.Module = Mlp(dimension, max(1, dimension // 4), dimension)

    @classmethod
    def stages(cls, settings: MethodSettings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        return (Stage(rates={"predictor": Rate(constant=True)}),)

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the negative cosine of both directions."""
        za, zb = ctx.encode(self.online, *batch.views())
        pa, pb = ctx.encode(self.predictor, za, zb)
        za, zb, pa, pb = ctx.gather(za, zb, pa, pb)
        ctx.report_embeddings(za, zb)
        return {"cosine": symmetric(negative_cosine, (pa, zb), (pb, za))}


def negative_cosine(prediction: Float[Tensor, "B D"], target: Float[Tensor, "B D"]) -> Float[Tensor, ""]:
    """Pull each prediction to its image's other view: −mean cos(p, z). No gradient reaches the target."""
    return -F.cosine_similarity(prediction, target.detach(), dim=1).mean()
