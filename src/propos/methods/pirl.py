"""PIRL (Misra and van der Maaten, CVPR 2020): an image and its shuffled patches have one representation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.config import Fraction, Positive
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.patches import PATCHES, Cutter, in_order
from propos.methods.setup import Setup
from propos.networks import Bank, Mlp

LARGEST = 1 - 1e-6  # a probability, so that the logarithm of the rest is finite


class Pirl(Method):
    """Contrast the remembered embedding of each image with the embedding of its patches and of a view of it.

    Deviations from the paper: negatives are all other images (there 32,000, drawn); the patches are cut from another
    view of the image. Our reading: negatives come from the bank in both terms, with one denominator.
    """

    class Settings(MethodSettings):
        """The temperature, the bank, and λ, the share of the patches' term."""

        temperature: Positive = 0.07
        bank_momentum: Fraction = 0.5
        patches_share: Fraction = 0.5

    year, reference = 2020, "Misra and van der Maaten, CVPR (arXiv 1912.01991)"
    verified = "only against its paper"
    defaults: ClassVar[Mapping[str, Any]] = {"network.bn_groups": 1, "network.shuffle_bn": False}
    at_scale: ClassVar[Mapping[str, Any]] = {
        "network.dimension": 128,
        "train.batch_size": 1024,
        "train.lr": 0.03,  # 0.12 for 1,024 images
        "train.warmup": 0,
        "train.weight_decay": 1e-4,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        dimension = setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, dimension))
        self.patch, self.together = Mlp(self.online.features, dimension), Mlp(PATCHES * dimension, dimension)
        self.cutter = Cutter.of(setup)
        self.bank = Bank(setup.rows, dimension, settings.bank_momentum, setup.generator("bank"))

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the contrast of both embeddings with the remembered one (Eqs. 4 and 5)."""
        settings, (view, other) = self.settings, batch.views()
        # The patches first: the running statistics that they move are saved for the image's backward pass.
        of_patches = self._encode_patches(other, ctx)
        z, p = ctx.gather(*ctx.encode(self.online, view), of_patches)
        ctx.report_embeddings(z)
        ctx.after_backward(self.bank.move, batch.images, F.normalize(z.detach(), dim=1))
        shared = self.bank["vectors"], batch.images, settings.temperature
        patches, images = noise_contrast(p, *shared), noise_contrast(z, *shared)
        return {"patches": settings.patches_share * patches, "images": (1 - settings.patches_share) * images}

    def _encode_patches(self, view: Float[Tensor, "b C H W"], ctx: StepContext) -> Float[Tensor, "b D"]:
        """Return the embeddings of the patches of this process's images, in a random order for each."""
        (draws,) = ctx.noise_like(view.new_empty(len(view), 3 * PATCHES), sigma=1.0)
        cut = in_order(self.cutter.cut(view, draws[:, PATCHES:]), draws[:, :PATCHES].argsort(dim=1))
        each = ctx.encode(self.patch, *ctx.encode(self.online.backbone, *cut.unbind(1)))
        return ctx.encode(self.together, torch.cat(each, dim=1))[0]


def noise_contrast(
    embeddings: Float[Tensor, "B D"], bank: Float[Tensor, "N D"], images: Int[Tensor, " B"], temperature: float
) -> Float[Tensor, ""]:
    """Tell each image's remembered embedding from all others: −mean_i [log h_ii + Σ_{j≠i} log(1 − h_ij)].

    h_ij = softmax_j(z_i·v_j / τ). Embeddings are normalised here, the bank before. No gradient reaches the bank.
    """
    logs = F.log_softmax(F.normalize(embeddings, dim=1) @ bank.T / temperature, dim=1)
    own = logs.gather(1, images[:, None])[:, 0]
    rest = torch.log1p(-logs.exp().clamp(max=LARGEST))
    others = rest.sum(dim=1) - rest.gather(1, images[:, None])[:, 0]
    return -(own + others).mean()
