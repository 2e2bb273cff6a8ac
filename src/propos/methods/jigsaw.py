"""Jigsaw (Noroozi and Favaro, ECCV 2016): in which order are the nine patches of the image?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.config import Count
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.patches import PATCHES, Cutter, in_order, uniform
from propos.methods.setup import Setup
from propos.networks import Memory, Mlp

CANDIDATES = 20  # random orders, for each that is kept
PATCH_WIDTH = 512  # of a patch's representation, as in the paper
SMALLEST_DEVIATION = 1e-3  # of a patch of one colour, which is not divided by nothing


class Jigsaw(Method):
    """Classify the order of the patches of an image; the backbone's features of whole images are the embeddings.

    Deviations from the paper: the network is the recipe's (there AlexNet with a stride of 2); of the orders most unlike
    each other the next is chosen among random ones (there of all). Patches of small images are enlarged.
    """

    class Settings(MethodSettings):
        """The orders."""

        permutations: Count = 100

    title = "Jigsaw"
    year, reference = 2016, "Noroozi and Favaro, ECCV (arXiv 1603.09246)"
    verified = "only against its paper"
    defaults: ClassVar[Mapping[str, Any]] = {
        "network.bn_groups": 1,
        "network.shuffle_bn": False,
        "views.jitter": 0.0,
        "views.rotation": 0.0,
        "views.crop_scale": (0.77, 1.0),
    }
    at_scale: ClassVar[Mapping[str, Any]] = {
        "jigsaw.permutations": 1000,
        "views.grey": 0.3,
        "train.batch_size": 256,
        "train.lr": 0.01,
        "train.schedule": "steps",
        "train.milestones": (0.3, 0.6, 0.9),
        "train.warmup": 0,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        self.online = setup.encoder()
        self.patch = Mlp(self.online.features, PATCH_WIDTH)
        self.head = Mlp(PATCHES * PATCH_WIDTH, setup.network.hidden, settings.permutations, relu_first=True)
        self.cutter = Cutter.of(setup)
        self.memory = Memory({"orders": PATCHES}, orders=distant_orders(settings.permutations).clone())

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the classification of the orders."""
        view = batch.view("random")
        (draws,) = ctx.noise_like(view.new_empty(len(view), 2 * PATCHES + 1), sigma=1.0)
        labels = uniform(draws[:, 0], self.settings.permutations)
        patches = standardised(in_order(self.cutter.cut(view, draws[:, 1:]), self.memory["orders"][labels]))
        features = ctx.encode(self.patch, *ctx.encode(self.online.backbone, *patches.unbind(1)))
        (logits,) = ctx.encode(self.head, torch.cat(features, dim=1))
        logits, whole = ctx.gather(logits, labels[:, None])
        return {"orders": F.cross_entropy(logits, whole[:, 0].long())}


def standardised(patches: Float[Tensor, "b 9 C p p"]) -> Float[Tensor, "b 9 C p p"]:
    """Return patches with mean 0 and deviation 1 in each channel, so that brightness does not tell an order."""
    mean = patches.mean(dim=(3, 4), keepdim=True)
    deviation = patches.std(dim=(3, 4), correction=0, keepdim=True)
    return (patches - mean) / deviation.clamp(min=SMALLEST_DEVIATION)


@cache
def distant_orders(count: int) -> Int[Tensor, "P 9"]:
    """Return orders of nine patches that differ in many places: each next one is farthest from the nearest before it.

    It is chosen among 20 times as many random orders, the same in every run.
    """
    pool = torch.rand(CANDIDATES * count, PATCHES, generator=torch.Generator().manual_seed(0)).argsort(dim=1)
    chosen, nearest = [0], (pool != pool[0]).sum(dim=1)
    for _ in range(count - 1):
        chosen.append(int(nearest.argmax()))
        nearest = torch.minimum(nearest, (pool != pool[chosen[-1]]).sum(dim=1))
    return pool[chosen]
