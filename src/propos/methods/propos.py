"""ProPos: prototype scattering and positive sampling (Huang et al., TPAMI 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from propos.config import Fraction, NotNegative, Positive
from propos.losses import (
    alignment,
    confident_pull,
    mean_of_present,
    membership,
    nt_xent,
    prototype_scattering,
    prototypes,
    symmetric,
)
from propos.methods.base import AllImages, Batch, Method, MethodSettings, Rate, Stage, StepContext
from propos.methods.pairs import Pairs
from propos.methods.setup import Setup
from propos.networks import EmaCopy, Encoder, Mlp, Queue, initialise_small


class ProPos(Method):
    """Align each image with noisy neighbours of its other view, and scatter the clusters' prototypes.

    Two losses of ours can be added, which the paper does not have: the recipes for small grey images contrast each
    image with the others of its batch, and at the end pull images together whose neighbours agree on their cluster.
    """

    class Settings(MethodSettings):
        """λ_psl, τ, σ and what is ours."""

        psl_weight: NotNegative = 0.1  # λ_psl
        temperature: Positive = 0.5  # τ
        # The epoch from which PSL and the noise take part; None: after the warm-up.
        psl_start: Annotated[int, Field(ge=0)] | None = None
        prototypes: Literal["scattered", "aligned", "uniform"] = "scattered"  # the others are the paper's ablations
        sigma: NotNegative = 0.001  # σ
        queue_size: Annotated[int, Field(ge=0, le=10**9)] = 0  # target embeddings of earlier batches, for prototypes
        predictor_rate: Positive = 10.0  # the predictor's learning rate, relative to the network's
        contrast_weight: NotNegative = 0.0  # ours: NT-Xent
        contrast_temperature: Positive = 0.5
        pull_weight: NotNegative = 0.0  # ours: replaces the contrast in the last part of training,
        pull_share: Fraction = 0.25  # which is this share of the epochs

    year, reference = 2022, "Huang et al., TPAMI (arXiv 2111.11821)"
    verified = "settings and readings against the paper and its released code"
    inputs = ("images", "features")
    tunes = True
    continued: ClassVar[Mapping[str, Any]] = {"psl_start": 0}
    as_pretext: ClassVar[Mapping[str, Any]] = {"pull_weight": 0.0}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        hidden, dimension = setup.network.hidden, setup.network.dimension
        # A pretrained network that is trained further has no heads: random ones would lose the clusters it starts with.
        self.online = setup.encoder(None if setup.tuned else lambda width: Mlp(width, hidden, dimension))
        self.target: EmaCopy[Encoder] = EmaCopy(self.online)
        self.predictor: nn.Module = nn.Identity() if setup.tuned else Mlp(dimension, hidden, dimension)
        initialise_small(self.predictor)
        self.starts_clustered = setup.tuned
        self.pairs = Pairs(setup)
        self.queue = Queue(settings.queue_size, self.online.dimension, setup.rows) if settings.queue_size else None

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        start, pull = cls._psl_start(settings, setup), cls._pull_start(settings, setup)
        readers = [start] * bool(settings.psl_weight) + [pull] * bool(settings.pull_weight)
        rates = {"predictor": Rate(settings.predictor_rate)}
        return (Stage(rates=rates, first_clusters=min(readers, default=None), **Pairs.stage_options(setup)),)

    @property
    def embedder(self) -> Encoder:
        """The target network."""
        return self.target.module

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return PSA, PSL once it has started, and what is ours (the paper's Eq. 12 is psa + psl)."""
        settings = self.settings
        a, b = self.pairs.of(batch)
        za, zb = ctx.encode(self.pairs.part(self.online), a, b)
        ta, tb = ctx.encode(self.pairs.part(self.embedder), a, b, shuffled=True)
        started = ctx.epoch >= self._psl_start(settings, self.setup)
        na, nb = ctx.noise_like(za, zb, sigma=settings.sigma if started else 0.0)
        pa, pb = ctx.encode(self.predictor, za + na, zb + nb)
        za, zb, ta, tb, pa, pb = ctx.gather(za, zb, ta, tb, pa, pb)

        losses = {"psa": symmetric(alignment, (pa, tb), (pb, ta))}
        if settings.psl_weight and started and batch.clustered:
            losses["psl"] = settings.psl_weight * self._of_prototypes((za, zb), (ta, tb), (pa, pb), batch, ctx)
        pulls = bool(settings.pull_weight) and ctx.epoch >= self._pull_start(settings, self.setup)
        if settings.contrast_weight and not pulls:
            losses["contrast"] = settings.contrast_weight * nt_xent(za, zb, settings.contrast_temperature)
        if pulls and batch.clustered:
            pull = symmetric(confident_pull, (za, tb), (zb, ta), batch.labels, ctx.clusters)
            losses["pull"] = settings.pull_weight * pull

        targets = (ta, tb) if self.pairs.symmetric else (ta,)
        ctx.report_embeddings(*targets)
        if self.queue is not None:
            ctx.after_backward(self.queue.push, torch.cat(targets), batch.images.repeat(len(targets)))
        return losses

    def make_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Find the neighbours that stand in for views."""
        self.pairs.make_tables(self.embedder, images)

    def after_step(self, ctx: StepContext) -> None:
        """Move the target network."""
        self.target.move(ctx.momentum)

    def _of_prototypes(
        self,
        online: tuple[Tensor, Tensor],
        targets: tuple[Tensor, Tensor],
        predictions: tuple[Tensor, Tensor],
        batch: Batch,
        ctx: StepContext,
    ) -> Float[Tensor, ""]:
        """Return the loss of the prototypes in both directions; the queue's entries join the batch's."""
        labels, temperature = batch.labels, self.settings.temperature
        if self.queue is not None:
            labels = torch.cat([labels, self.queue.labels(ctx.labels)])
            join = partial(_join, self.queue["vectors"])
            online, targets, predictions = join(online), join(targets), join(predictions)
        shared = labels, temperature, ctx.clusters
        (za, zb), (ta, tb), (pa, pb) = online, targets, predictions
        if self.settings.prototypes == "aligned":
            return symmetric(prototype_alignment, (pa, tb), (pb, ta), *shared)
        if self.settings.prototypes == "uniform":
            return (prototype_uniformity(za, *shared) + prototype_uniformity(zb, *shared)) / 2
        return symmetric(prototype_scattering, (za, tb), (zb, ta), *shared)

    @staticmethod
    def _psl_start(settings: Settings, setup: Setup) -> int:
        return setup.train.warmup if settings.psl_start is None else settings.psl_start

    @staticmethod
    def _pull_start(settings: Settings, setup: Setup) -> int:
        return setup.train.epochs - (round(settings.pull_share * setup.train.epochs) if settings.pull_weight else 0)


def _join(queue: Tensor, pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    return torch.cat([pair[0], queue]), torch.cat([pair[1], queue])


def prototype_alignment(
    prediction: Float[Tensor, "B D"],
    target: Float[Tensor, "B D"],
    labels: Int[Tensor, " B"],
    temperature: float,
    clusters: int | None = None,
) -> Float[Tensor, ""]:
    """Pull each cluster's prototype to its twin in the other view: −mean_k p_k·μ'_k / τ.

    p_k is the normalised sum of the cluster's normalised predictions. Clusters with no image in the batch, and
    images labelled -1, take no part; without any the loss is 0. No gradient reaches the target.
    """
    members, present = membership(labels, prediction.dtype, clusters)
    ours, twins = prototypes(prediction, members), prototypes(target.detach(), members)
    return -mean_of_present((ours * twins).sum(dim=1), present) / temperature


def prototype_uniformity(
    online: Float[Tensor, "B D"], labels: Int[Tensor, " B"], temperature: float, clusters: int | None = None
) -> Float[Tensor, ""]:
    """Push cluster prototypes apart: mean_k log Σ_{j≠k} exp(μ_k·μ_j / τ).

    Clusters with no image in the batch, and images labelled -1, take no part; with one cluster the loss is 0.
    """
    members, present = membership(labels, online.dtype, clusters)
    ours = prototypes(online, members)
    others = present & ~torch.eye(len(ours), dtype=torch.bool, device=ours.device)
    scattered = present & others.any(dim=1)
    logits = (ours @ ours.T / temperature).masked_fill(~others, -torch.inf)
    # A row without others has no logarithm; the 0 in its place takes no part.
    sums = torch.logsumexp(torch.where(scattered[:, None], logits, 0), dim=1)
    return mean_of_present(sums, scattered)
