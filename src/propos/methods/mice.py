"""MiCE: an expert for each cluster, and a gate that assigns images to experts (Tsai et al., ICLR 2021)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from propos.config import Count, Positive
from propos.losses import log_prob, symmetric
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import EmaCopy, Encoder, Float32, Mlp, Queue, mlp_layers
from propos.runs import CONFIDENCE_TEMPERATURE


class Mice(Method):
    """Contrast images by a mixture of experts, one for each cluster; the gate between them assigns the clusters.

    Deviations from the public code: both views are queries, each with the other's key; prototypes are found
    before every epoch among plain images, in the gate's clusters, and no gradient moves them in between; the gate has
    batch norm, without which it assigns nearly all images to one expert at first; the gate decides, which needs no
    queue, where theirs is the posterior of all three views. Unverified: CIFAR-10 at their length.
    """

    class Settings(MethodSettings):
        """The temperatures and the queue of negatives."""

        temperature: Positive = 1.0
        gate_temperature: Positive = 1.0
        queue_size: Count = 1024

    title = "MiCE"
    year, reference = 2021, "Tsai et al., ICLR"
    verified = "the loss and settings against its public code; see the docs"
    has_head = True
    defaults: ClassVar[Mapping[str, Any]] = {
        "network.bn_groups": 1,
        "network.shuffle_bn": False,
        "network.momentum": 0.99,
        "train.weight_decay": 1e-4,
    }
    at_scale: ClassVar[Mapping[str, Any]] = {
        "network.dimension": 128,
        "network.momentum": 0.999,
        "mice.queue_size": 16384,
        "train.lr": 1.0,
        "train.schedule": "steps",
        "train.milestones": (0.48, 0.64, 0.8),
        "train.warmup": 10,
    }

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        self.experts, dimension = setup.clusters, setup.network.dimension
        outputs, inner = self.experts * dimension, max(dimension, self.experts)  # the simplex needs K dimensions
        self.online = setup.encoder(lambda width: Float32(Mlp(width, outputs), UnitVectors(self.experts)))
        self.target: EmaCopy[Encoder] = EmaCopy(self.online)
        layers = mlp_layers(self.online.features, inner, norm_last=True)
        self.gate = Float32(*layers, Simplex(inner, self.experts))
        self.queue = Queue(settings.queue_size, outputs, setup.rows, setup.generator("queue"))

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage, which reads prototypes from the start."""
        return (Stage(first_clusters=0, decides="head"),)

    @property
    def embedder(self) -> Encoder:
        """The key encoder."""
        return self.target.module

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the mixture of both directions, averaged, with the gate of a third view."""
        a, b = batch.views()
        features = ctx.encode(self.online.backbone, a, b)
        qa, qb = ctx.encode(self.online.projector, *features)
        ka, kb = ctx.encode(self.target, a, b, shuffled=True)
        ctx.encode(self.gate, *features)  # for batch norm's running statistics alone, which are of all three views
        (gate,) = ctx.encode(self.gate, *ctx.encode(self.online.backbone, batch.view("random", 2)))
        qa, qb, ka, kb, gate = ctx.gather(qa, qb, ka, kb, gate)
        gate = (gate / self.settings.gate_temperature).softmax(dim=1)

        ctx.report_embeddings(ka, kb)
        ctx.after_backward(self.queue.push, torch.cat([ka, kb]), batch.images.repeat(2))
        negatives, prototypes = by_expert(self.queue["vectors"], self.experts), own_parts(ctx.prototypes)
        qa, qb, ka, kb = (by_expert(each, self.experts) for each in (qa, qb, ka, kb))
        shared = negatives, prototypes, gate, self.settings.temperature
        return {"experts": symmetric(contrastive_experts, (qa, kb), (qb, ka), *shared)}

    def after_step(self, ctx: StepContext) -> None:
        """Move the key encoder."""
        self.target.move(ctx.momentum)

    def assign(self, features: Tensor) -> Tensor:
        """Return the gate's cosines over the temperature of k-means's confidence.

        At the temperature that the gate is trained with, no probability is far above 1 / K.
        """
        cosines: Tensor = self.gate(features)
        return cosines / CONFIDENCE_TEMPERATURE


class Simplex(nn.Module):
    """The cosine with each of K fixed directions, any two of which have a cosine of −1/(K − 1).

    The k-th direction is the k-th axis minus the mean of the first K axes, normalised.
    """

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        assert 2 <= outer <= inner, f"a simplex of {outer} directions needs as many dimensions, not {inner}"
        self.directions = outer

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B K"]:
        """Return the cosines."""
        along = F.normalize(features, dim=1)[:, : self.directions]
        return math.sqrt(self.directions / (self.directions - 1)) * (along - along.mean(dim=1, keepdim=True))


class UnitVectors(nn.Module):
    """Normalise each of several vectors that are concatenated in a row."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, rows: Float[Tensor, "B F"]) -> Float[Tensor, "B F"]:
        """Return the rows of unit vectors."""
        return by_expert(rows, self.count).flatten(1)


def by_expert(rows: Float[Tensor, "N KD"], experts: int) -> Float[Tensor, "N K D"]:
    """Return the unit vector of each expert, of rows that hold one after the other."""
    return F.normalize(rows.unflatten(1, (experts, -1)), dim=2)


def own_parts(prototypes: Float[Tensor, "K KD"]) -> Float[Tensor, "K D"]:
    """Return, of each cluster's prototype, its own expert's part."""
    return by_expert(prototypes, len(prototypes)).diagonal(dim1=0, dim2=1).T


def contrastive_experts(
    queries: Float[Tensor, "B K D"],
    keys: Float[Tensor, "B K D"],
    negatives: Float[Tensor, "Q K D"],
    prototypes: Float[Tensor, "K D"],
    gate: Float[Tensor, "B K"],
    temperature: float,
) -> Float[Tensor, ""]:
    """Contrast each image's own key with the queue by the experts, weighted by the gate: −mean_i log Σ_k π_ik φ_ik.

    With f_ik, v_ik and u_nk the outputs of expert k for image i, its key and the queue, and μ_k its prototype:
    φ_ik = exp(v_ik·(f_ik + μ_k)/τ) / (exp(v_ik·(f_ik + μ_k)/τ) + Σ_n exp(u_nk·(f_ik + μ_k)/τ)). This is EM's bound
    −mean_i Σ_k q_ik log(π_ik φ_ik / q_ik) at the posterior, q_ik ∝ π_ik φ_ik. All are unit vectors; no gradient
    reaches keys or prototypes.
    """
    near = queries + prototypes.detach()
    own = (near * keys.detach()).sum(dim=2, keepdim=True)
    others = torch.einsum("bkd,qkd->bkq", near, negatives)
    log_phi = F.log_softmax(torch.cat([own, others], dim=2) / temperature, dim=2)[:, :, 0]
    return -(log_prob(gate) + log_phi).logsumexp(dim=1).mean()
