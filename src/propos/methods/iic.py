"""IIC: clusters with the largest mutual information between two views (Ji et al., ICCV 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from propos.config import Count
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import ClusterHeads, Mlp

SMALLEST = 1e-12  # a probability whose logarithm is finite


class Iic(Method):
    """Maximise the information between the clusters of an image and its random view, in K and in many more clusters.

    Deviations from the public code: both kinds of heads are trained in every step, not in alternating epochs; images
    keep their colours and are not reduced to edges; a step has one random view of each image next to the plain one; no
    epoch or head is chosen by labels.
    """

    class Settings(MethodSettings):
        """The heads of both kinds."""

        heads: Count = 5  # of each kind; the one with the lowest loss decides
        overclustering: Count = 7  # clusters of the other kind, times the number of clusters

    year, reference = 2019, "Ji et al., ICCV (arXiv 1807.06653)"
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
        """Return the negative information in K and in many clusters, averaged over the heads."""
        za, zb = ctx.encode(self.online, batch.view("plain", 0), batch.view("random", 1))
        logits = *ctx.encode(self.heads, za, zb), *ctx.encode(self.over_heads, za, zb)
        za, zb, *logits_of_all = ctx.gather(za, zb, *logits)
        ctx.report_embeddings(za, zb)
        pa, pb, over_a, over_b = (each.softmax(dim=-1) for each in logits_of_all)
        information = _of_each_head(pa, pb)
        self.heads.record(information)
        each = 1 / self.settings.heads
        return {
            "information": each * information.sum(),
            "over_information": each * _of_each_head(over_a, over_b).sum(),
        }

    def end_epoch(self, ctx: StepContext) -> None:
        """Choose the head with the lowest loss."""
        self.heads.choose()

    def assign(self, features: Tensor) -> Tensor:
        """Return the logits of the chosen head."""
        return self.heads.pick(self.heads(self.online.projector(features)))


def mutual_information(first: Float[Tensor, "B K"], second: Float[Tensor, "B K"]) -> Float[Tensor, ""]:
    """Return the negative mutual information of two views' clusters: −I(k; k').

    −Σ_kl J_kl log(J_kl / (J_k J_l)), with J the mean over images of p_i(k) q_i(l), made symmetric, and J_k its sums. It
    is −log K where both views put every image into the same of K equal clusters with certainty, and 0 where one view's
    clusters tell nothing of the other's.
    """
    joint = first.T @ second / len(first)
    joint = (joint + joint.T) / 2
    marginal = joint.sum(dim=1).clamp(min=SMALLEST).log()
    return -(joint * (joint.clamp(min=SMALLEST).log() - marginal[:, None] - marginal)).sum()


def _of_each_head(first: Float[Tensor, "B H K"], second: Float[Tensor, "B H K"]) -> Float[Tensor, " H"]:
    pairs = zip(first.unbind(1), second.unbind(1), strict=True)
    return torch.stack([mutual_information(p, q) for p, q in pairs])
