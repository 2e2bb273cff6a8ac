"""RotNet (Gidaris et al., ICLR 2018): by how many quarter turns was the image turned?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.networks import Mlp

TURNS = 4


class RotNet(Method):
    """Turn a view of each image to all four sides and classify the turns; the backbone's features are the embeddings.

    Deviations from the paper: the network is the recipe's, and its last features count (there layers of AlexNet or
    NIN are probed); crops of 0.77 of the area and more (there 224 of 256 pixels a side).
    """

    Settings = MethodSettings
    title = "RotNet"
    year, reference = 2018, "Gidaris et al., ICLR (arXiv 1803.07728)"
    verified = "the four turns and their loss against its public code"
    # Statistics of one turn alone would tell it: all four are normalised together.
    defaults: ClassVar[Mapping[str, Any]] = {
        "network.bn_groups": 1,
        "network.shuffle_bn": False,
        "network.joint_views": True,
        "views.jitter": 0.0,
        "views.grey": 0.0,
        "views.rotation": 0.0,
        "views.crop_scale": (0.77, 1.0),
    }
    at_scale: ClassVar[Mapping[str, Any]] = {
        "train.batch_size": 128,
        "train.lr": 0.1 * 256 / 128,
        "train.schedule": "steps",
        "train.milestones": (0.3, 0.6, 0.8),
        "train.warmup": 0,
        "train.weight_decay": 5e-4,
    }

    def __init__(self, settings: MethodSettings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.online = setup.encoder()
        self.head = Mlp(self.online.features, TURNS)

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the classification of the turns."""
        view = batch.view("random")
        features = ctx.encode(self.online, *(torch.rot90(view, turns, dims=(2, 3)) for turns in range(TURNS)))
        upright, *logits = ctx.gather(features[0], *ctx.encode(self.head, *features))
        ctx.report_embeddings(upright)
        return {"rotations": turn_classification(*logits)}


def turn_classification(*logits: Float[Tensor, "B 4"]) -> Float[Tensor, ""]:
    """Return the cross-entropy of the turns, where the r-th logits are of the images turned r times (Eqs. 2 and 3)."""
    losses = [
        F.cross_entropy(each, torch.full((len(each),), turns, device=each.device)) for turns, each in enumerate(logits)
    ]
    return torch.stack(losses).mean()
