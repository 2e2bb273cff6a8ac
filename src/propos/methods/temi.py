"""TEMI: heads on frozen features, trained by weighted mutual information (Adaloglou et al., BMVC 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from propos.clustering import nearest_neighbours
from propos.config import Count, Positive
from propos.methods.base import Batch, StepContext
from propos.methods.heads_training import Tables, sum_over_heads
from propos.methods.images import AllImages
from propos.methods.pretext import BuildsOn, PretextSettings, PretextShare
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import ClusterHeads, EmaCopy, Float32, Memory

HIDDEN = 512, 256
TEMPERATURE = 0.1
POWER = 0.6  # β
WARMUP = 0.2  # of the epochs
SHARES_STEP = 0.1  # how far a batch moves the running mean of the clusters' shares
SMALLEST = 1e-16  # a product of probabilities whose power has a finite gradient


class Temi(BuildsOn):
    """Let several heads, each with a moving average, assign an image's frozen features to its neighbours' cluster.

    The features are a pretrained network's, whitened as the settings say, or those of the pretext. Deviations from the
    public code: the last layer is trained from the first epoch on, and no image is its own neighbour.
    """

    class Settings(PretextSettings):
        """Neighbours and heads."""

        pretext: str = "simclr"
        pretext_share: PretextShare = 0.5
        neighbours: Count = 50
        heads: Count = 16  # the one with the lowest loss is chosen
        heads_lr: Positive = 4e-3  # the learning rate of the heads, for 256 images

    year, reference = 2023, "Adaloglou et al., BMVC (arXiv 2303.17896)"
    verified = "terms and settings against its public code"
    has_head = True
    inputs = ("images", "features")
    at_scale: ClassVar[Mapping[str, Any]] = {"temi.heads_lr": 1e-4, "network.momentum": 0.996}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        clusters, width = setup.clusters, self.online.features
        self.heads = ClusterHeads(lambda: build_head(width, clusters), settings.heads)
        self.averages: EmaCopy[ClusterHeads] = EmaCopy(self.heads)
        neighbours = min(settings.neighbours, setup.images - 1)
        self.tables = Tables(setup.images, table=(torch.int64, neighbours), features=(torch.float32, width))
        self.memory = Memory(shares=torch.full((settings.heads, clusters), 1 / clusters))

    @classmethod
    def pretext_name(cls, settings: Settings, setup: Setup) -> str:
        """Return the pretext; on a pretrained network's features there is nothing to train before the heads."""
        return settings.pretext if setup.start.network is None else "kmeans-features"

    @classmethod
    def own_stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return the training of the heads."""
        share = 1 - settings.pretext_share if cls.pretext_stages(settings, setup) else 1
        epochs = max(1, round(share * setup.train.epochs))
        train = {
            "optimiser": "adamw",
            "lr": settings.heads_lr,
            "schedule": "constant",
            "warmup": round(WARMUP * epochs),
            "weight_decay": 1e-4,
            "decay_norms": False,
        }
        return (Stage("heads", 1.0, ("heads",), train, tables_every=0, decides="head"),)

    def own_losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the weighted information of both directions, averaged over directions and heads."""
        features = self.tables["features"]
        a, b = batch.rows(features), batch.partners(self.tables).rows(features)
        logits = ctx.gather(*ctx.encode(self.heads, a, b), *ctx.encode(self.averages, a, b))
        sa, sb, ta, tb = (each.softmax(dim=-1) for each in logits)
        of_heads = weighted_information((sa, sb), (ta, tb), self._move_shares(ta, tb), POWER)
        return sum_over_heads(self.heads, {"information": of_heads})

    def own_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Compute the features of all images, and find each image's neighbours by them."""
        features = images.apply(self.online.backbone)
        points, count = F.normalize(features, dim=1), min(self.settings.neighbours, len(features) - 1)
        self.tables["features"] = features
        self.tables["table"] = images.gather(nearest_neighbours(points, count, images.local))

    def own_after_step(self, ctx: StepContext) -> None:
        """Move the averages of the heads."""
        self.averages.move(ctx.momentum)

    def own_end_epoch(self, ctx: StepContext) -> None:
        """Choose the head with the lowest loss."""
        self.heads.choose()

    def assign(self, features: Tensor) -> Tensor:
        """Return the logits of the chosen head's moving average."""
        return self.heads.pick(self.averages(features))

    @torch.no_grad()
    def _move_shares(self, first: Float[Tensor, "B H K"], second: Float[Tensor, "B H K"]) -> Float[Tensor, "H K"]:
        """Move the running mean of the clusters' shares towards those of both views, and return it."""
        now = (first.mean(dim=0) + second.mean(dim=0)) / 2
        return self.memory["shares"].lerp_(now, SHARES_STEP)


class Directions(nn.Module):
    """A layer that compares directions: the cosine with each row, times a learnt gain, divided by the temperature."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.Linear(inner, outer, bias=False).weight.detach())
        self.gain = nn.Parameter(torch.ones(outer))

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B K"]:
        """Return the logits."""
        cosines = F.linear(F.normalize(features, dim=1), F.normalize(self.weight, dim=1))
        return cosines * self.gain / TEMPERATURE


def build_head(inner: int, clusters: int) -> nn.Module:
    """Build a head of three layers; there is no activation before the last, which compares directions."""
    first, second = HIDDEN
    return Float32(nn.Linear(inner, first), nn.GELU(), nn.Linear(first, second), Directions(second, clusters))


def weighted_information(
    students: tuple[Float[Tensor, "B H K"], Float[Tensor, "B H K"]],
    teachers: tuple[Float[Tensor, "B H K"], Float[Tensor, "B H K"]],
    shares: Float[Tensor, "H K"],
    power: float,
) -> Float[Tensor, " H"]:
    """Return each head's part of the loss: the information of both directions, averaged over directions and heads.

    −mean_i w_i log Σ_k (s(k|x_i) t(k|x'_i))^β / p_k, with s a student's probabilities and t the other view's teacher's.
    The weight w_i is the probability that a pair is in one cluster, the mean over heads of Σ_k t(k|x_i) t(k|x'_i). No
    gradient reaches teachers and shares.
    """
    first, second = (each.detach() for each in teachers)
    weights = (first * second).sum(dim=-1).mean(dim=-1)

    def direction(student: Tensor, teacher: Tensor) -> Tensor:
        together = (student * teacher).clamp(min=SMALLEST).pow(power)
        return -(weights[:, None] * (together / shares.detach()).sum(dim=-1).log()).mean(dim=0)

    return (direction(students[0], second) + direction(students[1], first)) / (2 * len(shares))
