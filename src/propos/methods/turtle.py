"""TURTLE: the labels of frozen features that a linear model learns best (Gadetsky, Jiang and Brbić, ICML 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from propos.config import Count, NotNegative, Positive
from propos.methods.base import Batch, StepContext
from propos.methods.heads_training import Tables
from propos.methods.images import AllImages
from propos.methods.pretext import BuildsOn, PretextSettings, PretextShare
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import Float32

BETAS, SMALL = (0.9, 0.999), 1e-8  # of Adam


class Turtle(BuildsOn):
    """Label images by a linear head so that another one, trained for a few steps on these labels, predicts them.

    The features are a pretrained network's, whitened as the settings say, or those of the pretext; all have one scale:
    the root mean square of a number is 1. Deviations from the public code: one space of features, not several; the
    second head starts from zero at every step, not from random weights, so that all processes train the same.
    """

    class Settings(PretextSettings):
        """The two linear heads."""

        pretext: str = "simclr"
        pretext_share: PretextShare = 0.5
        entropy_weight: NotNegative = 10.0  # γ: how strongly clusters are held to equal sizes
        inner_steps: Count = 10  # M: steps of the head that learns the labels
        inner_lr: Positive = 0.1  # the learning rate of these steps
        heads_lr: Positive = 1e-2  # the learning rate of the head that labels, for 256 images

    year, reference = 2024, "Gadetsky et al., ICML (arXiv 2406.07236)"
    verified = "loss and settings against its public code"
    has_head = True
    inputs = ("images", "features")
    at_scale: ClassVar[Mapping[str, Any]] = {"turtle.heads_lr": 2.56e-5, "turtle.inner_lr": 1e-3}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        width = self.online.features
        self.head = Float32(WeightNorm(width, setup.clusters))
        self.tables = Tables(setup.images, features=(torch.float32, width))
        self.register_buffer("scale", torch.ones(()))  # of the features

    @classmethod
    def pretext_name(cls, settings: Settings, setup: Setup) -> str:
        """Return the pretext; on a pretrained network's features there is nothing to train before the heads."""
        return settings.pretext if setup.start.network is None else "kmeans-features"

    @classmethod
    def own_stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return the training of the head that labels."""
        train = {"optimiser": "adam", "lr": settings.heads_lr, "schedule": "constant", "warmup": 0, "weight_decay": 0.0}
        return (Stage("heads", 1.0, ("head",), train, tables_every=0, decides="head"),)

    def own_losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the error of a head that learnt the labels, and the weighted balance of the labels."""
        features = batch.rows(self.tables["features"]) * self.get_buffer("scale")
        logits, features = ctx.gather(*ctx.encode(self.head, features), features)
        labels = logits.softmax(dim=1)
        error = learner_error(features, labels, self.settings.inner_steps, self.settings.inner_lr)
        entropy = torch.special.entr(labels.mean(dim=0)).sum()
        return {"error": error, "balance": -self.settings.entropy_weight * entropy}

    def own_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Compute the features of all images, and their scale."""
        features = images.apply(self.online.backbone)
        self.tables["features"] = features
        self.get_buffer("scale").copy_(features.square().mean().clamp(min=1e-12).rsqrt())

    def assign(self, features: Tensor) -> Tensor:
        """Return the logits of the head that labels."""
        logits: Tensor = self.head(features * self.get_buffer("scale"))
        return logits


class WeightNorm(nn.Module):
    """A linear layer whose rows have a direction and a length of their own (Salimans and Kingma 2016)."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        linear = nn.Linear(inner, outer)
        self.direction = nn.Parameter(linear.weight.detach())
        self.length = nn.Parameter(linear.weight.detach().norm(dim=1))
        self.bias = nn.Parameter(linear.bias.detach())

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B K"]:
        """Return the logits."""
        return F.linear(features, F.normalize(self.direction, dim=1) * self.length[:, None], self.bias)


def learner_error(
    features: Float[Tensor, "B F"], labels: Float[Tensor, "B K"], steps: int, lr: float
) -> Float[Tensor, ""]:
    """Return the cross-entropy of a linear model that learnt the labels; its weights have no gradient."""
    weights = learn_labels(features, labels.detach(), steps, lr)
    return -(labels * (with_ones(features) @ weights).log_softmax(dim=1)).sum(dim=1).mean()


@torch.no_grad()
def learn_labels(
    features: Float[Tensor, "B F"], labels: Float[Tensor, "B K"], steps: int, lr: float
) -> Float[Tensor, "F1 K"]:
    """Return the weights, the bias last, of a linear model after some steps of Adam on the cross-entropy, from zero."""
    rows = with_ones(features)
    weights = rows.new_zeros((rows.shape[1], labels.shape[1]))
    mean, square = torch.zeros_like(weights), torch.zeros_like(weights)
    for step in range(1, steps + 1):
        gradient = rows.T @ ((rows @ weights).softmax(dim=1) - labels) / len(rows)
        mean.lerp_(gradient, 1 - BETAS[0])
        square.lerp_(gradient.square(), 1 - BETAS[1])
        spread = (square / (1 - BETAS[1] ** step)).sqrt() + SMALL
        weights = weights - lr / (1 - BETAS[0] ** step) * mean / spread
    return weights


def with_ones(features: Float[Tensor, "B F"]) -> Float[Tensor, "B F1"]:
    """Return features with a column of ones, for the bias."""
    return torch.cat([features, features.new_ones((len(features), 1))], dim=1)
