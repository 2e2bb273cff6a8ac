"""PICA: the most confident partition, each cluster matched with itself in the other view (Huang et al., CVPR 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from propos.config import Count, NotNegative
from propos.losses import cluster_balance, cluster_matching
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import ClusterHeads, Mlp


class Pica(Method):
    """Match the clusters of images one to one with those of their random views, in K and in many more clusters.

    Deviations from the public code: both kinds of heads are trained in every step, not in alternating epochs; images
    keep their colours and are not reduced to edges; a step has one random view of each image, not three; no epoch is
    chosen by labels.
    """

    class Settings(MethodSettings):
        """The heads of both kinds, and the balance of their clusters."""

        heads: Count = 1  # of each kind; the one with the lowest loss decides
        overclustering: Count = 7  # clusters of the other kind, times the number of clusters
        balance_weight: NotNegative = 2.0  # how strongly clusters are held to equal sizes

    year, reference = 2020, "Huang et al., CVPR"
    verified = "the loss and settings against its public code"
    has_head = True
    defaults: ClassVar[Mapping[str, Any]] = {
        "network.bn_groups": 1,
        "network.shuffle_bn": False,
        "train.optimiser": "adam",
        "train.lr": 1e-3,
        "train.schedule": "constant",
        "train.warmup": 0,
        "train.weight_decay": 0.0,
    }
    at_scale: ClassVar[Mapping[str, Any]] = {"train.lr": 1e-4}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        clusters, dimension = setup.clusters, setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, dimension))
        self.heads = ClusterHeads(lambda: Mlp(dimension, clusters), settings.heads)
        self.over_heads = ClusterHeads(lambda: Mlp(dimension, settings.overclustering * clusters), settings.heads)

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        return (Stage(decides="head"),)

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the matching and the balance of the plain images, in K and in many clusters, summed over the heads."""
        za, zb = ctx.encode(self.online, batch.view("plain", 0), batch.view("random", 1))
        logits = *ctx.encode(self.heads, za, zb), *ctx.encode(self.over_heads, za, zb)
        za, zb, *logits_of_all = ctx.gather(za, zb, *logits)
        ctx.report_embeddings(za, zb)
        pa, pb, over_a, over_b = (each.softmax(dim=-1).unbind(1) for each in logits_of_all)
        weight = self.settings.balance_weight
        matching, balance = _matching(pa, pb), _balance(pa)
        self.heads.record(matching + weight * balance)
        losses = {
            "clusters": matching.sum(),
            "balance": weight * balance.sum(),
            "over_clusters": _matching(over_a, over_b).sum(),
            "over_balance": weight * _balance(over_a).sum(),
        }
        return losses if weight else {name: losses[name] for name in ("clusters", "over_clusters")}

    def end_epoch(self, ctx: StepContext) -> None:
        """Choose the head with the lowest loss."""
        self.heads.choose()

    def assign(self, features: Tensor) -> Tensor:
        """Return the logits of the chosen head."""
        return self.heads.pick(self.heads(self.online.projector(features)))


def _matching(first: Sequence[Tensor], second: Sequence[Tensor]) -> Float[Tensor, " H"]:
    """Return the matching of each head's clusters."""
    return torch.stack([cluster_matching(p, q) for p, q in zip(first, second, strict=True)])


def _balance(first: Sequence[Tensor]) -> Float[Tensor, " H"]:
    """Return the balance of each head's clusters."""
    return torch.stack([cluster_balance(p) for p in first])
