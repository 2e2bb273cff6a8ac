"""The memory bank: an embedding of every image, moved a little towards what each step makes of it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.training.learner import Learner
from propos.training.seeds import generator


def first_bank(learner: Learner) -> Float[Tensor, "N D"] | None:
    """Return the bank with which a stage begins, if it has one: random directions, of images only trained on too."""
    if learner.stage.bank is None:
        return None
    images, more, _ = learner.images
    draw = torch.randn(images + more, learner.dimension, generator=generator(learner.seed, "bank"))
    return F.normalize(draw, dim=1).to(learner.device)


def moved(
    bank: Float[Tensor, "N D"], images: Int[Tensor, " B"], embeddings: Float[Tensor, "B D"], momentum: float
) -> Float[Tensor, "N D"]:
    """Return the bank, in place, with the rows of some images moved: v ← m v + (1 − m) z, made unit vectors again."""
    return bank.index_copy_(0, images, F.normalize(momentum * bank[images] + (1 - momentum) * embeddings, dim=1))
