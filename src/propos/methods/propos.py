"""ProPos: prototype scattering and positive sampling (Huang et al., TPAMI 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from propos.config import Fraction, NotNegative, Positive
from propos.losses import (
    alignment,
    both_ways,
    confident_pull,
    mean_of_present,
    membership,
    nt_xent,
    prototype_scattering,
    prototypes,
    symmetric,
)
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.images import AllImages
from propos.methods.pairs import Pairs
from propos.methods.setup import Setup
from propos.methods.stage import Rate, Stage, Start
from propos.networks import EmaCopy, Encoder, Mlp, Queue, initialise_small


class ViewOutputs(NamedTuple):
    """Two views, a and b, of a batch: projections z, targets t, predictions p of noisy projections; not normalised."""

    za: Float[Tensor, "B D"]
    zb: Float[Tensor, "B D"]
    ta: Float[Tensor, "B D"]
    tb: Float[Tensor, "B D"]
    pa: Float[Tensor, "B D"]
    pb: Float[Tensor, "B D"]


class ProPos(Method):
    """Predict each view's target from the other view's noisy projection, and scatter the clusters' prototypes.

    Two losses of ours can be added, which the paper does not have: recipes for a CPU contrast each image
    with the others of its batch, and at the end pull images together whose neighbours agree on their cluster.
    """

    class Settings(MethodSettings):
        """λ_psl, τ, σ, and the weights of our two additional losses."""

        psl_weight: NotNegative = 0.1  # λ_psl
        temperature: Positive = 0.5  # τ
        # The epoch from which PSL and the noise take part; None: after the warm-up.
        psl_start: Annotated[int, Field(ge=0)] | None = None
        prototypes: Literal["scattered", "aligned", "uniform"] = "scattered"  # the others are the paper's ablations
        sigma: NotNegative = 0.001  # σ
        queue_size: Annotated[int, Field(ge=0, le=10**9)] = 0  # target embeddings of earlier batches, for prototypes
        predictor_rate: Positive = 10.0  # the predictor's learning rate, relative to the network's
        contrast_weight: NotNegative = 0.0  # NT-Xent, not in the paper
        contrast_temperature: Positive = 0.5
        pull_weight: NotNegative = 0.0  # not in the paper: replaces the contrast at the end of training
        pull_share: Fraction = 0.25  # the share of the epochs that pulls

    title = "ProPos"
    year, reference = 2022, "Huang et al., TPAMI (arXiv 2111.11821)"
    verified = "settings and readings against the paper and its released code"
    inputs = ("images", "features")
    tunes = True
    has_predictor = True
    when_continuing: ClassVar[Mapping[str, Any]] = {"psl_start": 0}
    as_pretext: ClassVar[Mapping[str, Any]] = {"pull_weight": 0.0}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        hidden, dimension = setup.network.hidden, setup.network.dimension
        # A pretrained network that is trained further has no projector: a random one would destroy its clusters.
        self.online = setup.encoder(None if setup.tuned else lambda width: Mlp(width, hidden, dimension))
        self.target: EmaCopy[Encoder] = EmaCopy(self.online)
        self.predictor: nn.Module = nn.Identity() if setup.tuned else Mlp(dimension, hidden, dimension)
        initialise_small(self.predictor)
        self.good_initial_embeddings = setup.tuned
        self.pairs = Pairs(setup)
        self.queue = Queue(settings.queue_size, self.online.dimension, setup.rows) if settings.queue_size else None

    @classmethod
    def display_name(cls, settings: Settings) -> str:
        """Return its title and the additional losses."""
        added = {"contrast": settings.contrast_weight, "pull": settings.pull_weight}
        return " + ".join([cls.title, *(name for name, weight in added.items() if weight)])

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        psl, pull = cls._psl_start(settings, setup), cls._pull_start(settings, setup)
        starts: dict[str, Start] = {}
        if settings.psl_weight:
            starts["psl"] = Start(psl, "lower", "train.warmup" if settings.psl_start is None else "psl_start")
        if settings.pull_weight:
            starts["pull"] = Start(pull, "raise", "pull_share")
        rates = {"predictor": Rate(settings.predictor_rate)}
        first = min((start.epoch for start in starts.values()), default=None)
        return (Stage(rates=rates, first_clusters=first, starts=starts, **Pairs.stage_options(setup)),)

    @property
    def embedder(self) -> Encoder:
        """The target network."""
        return self.target.module

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Encode two views and return their losses."""
        views = self.encode(batch, ctx)
        targets = (views.ta, views.tb) if self.pairs.symmetric else (views.ta,)
        ctx.report_embeddings(*targets)
        if self.queue is not None:
            ctx.after_backward(self.queue.push, torch.cat(targets), batch.images.repeat(len(targets)))
        return self.loss_terms(views, batch, ctx)

    def encode(self, batch: Batch, ctx: StepContext) -> ViewOutputs:
        """Return the projections, predictions and targets of two views of the whole batch."""
        a, b = self.pairs.inputs(batch)
        za, zb = ctx.encode(self.pairs.part(self.online), a, b)
        ta, tb = ctx.encode(self.pairs.part(self.embedder), a, b, shuffled=True)
        na, nb = ctx.noise_like(za, zb, sigma=self.settings.sigma if self._psl_started(ctx) else 0.0)
        pa, pb = ctx.encode(self.predictor, za + na, zb + nb)
        return ViewOutputs(*ctx.gather(za, zb, ta, tb, pa, pb))

    def loss_terms(self, views: ViewOutputs, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return PSA, PSL once it has started, and our additional losses (the paper's Eq. 12 is psa + psl)."""
        settings, (za, zb, ta, tb, pa, pb) = self.settings, views
        losses = {"psa": alignment(*both_ways((pa, tb), (pb, ta)))}
        if settings.psl_weight and self._psl_started(ctx) and batch.clustered:
            losses["psl"] = settings.psl_weight * self._prototype_loss(views, batch, ctx)
        pulls = bool(settings.pull_weight) and ctx.epoch >= self._pull_start(settings, self.setup)
        if settings.contrast_weight and not pulls:
            losses["contrast"] = settings.contrast_weight * nt_xent(za, zb, settings.contrast_temperature)
        if pulls and batch.clustered:
            pull = symmetric(confident_pull, (za, tb), (zb, ta), batch.labels, ctx.clusters)
            losses["pull"] = settings.pull_weight * pull
        return losses

    def make_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Find the neighbours that replace second views."""
        self.pairs.make_tables(self.embedder, images)

    def after_step(self, ctx: StepContext) -> None:
        """Move the target network."""
        self.target.move(ctx.momentum)

    def _prototype_loss(self, views: ViewOutputs, batch: Batch, ctx: StepContext) -> Float[Tensor, ""]:
        """Return the loss of the prototypes in both directions; the queue's entries join the batch's."""
        labels = batch.labels
        if self.queue is not None:
            labels = torch.cat([labels, self.queue.labels(ctx.labels)])
            views = ViewOutputs(*(torch.cat([view, self.queue["vectors"]]) for view in views))
        shared, (za, zb, ta, tb, pa, pb) = (labels, self.settings.temperature, ctx.clusters), views
        if self.settings.prototypes == "aligned":
            return symmetric(prototype_alignment, (pa, tb), (pb, ta), *shared)
        if self.settings.prototypes == "uniform":
            return (prototype_uniformity(za, *shared) + prototype_uniformity(zb, *shared)) / 2
        ours, theirs = both_ways((za, tb), (zb, ta))
        return prototype_scattering(ours, theirs, *shared)

    def _psl_started(self, ctx: StepContext) -> bool:
        """Return whether PSL and the noise take part."""
        return ctx.epoch >= self._psl_start(self.settings, self.setup)

    @staticmethod
    def _psl_start(settings: Settings, setup: Setup) -> int:
        return setup.train.warmup if settings.psl_start is None else settings.psl_start

    @staticmethod
    def _pull_start(settings: Settings, setup: Setup) -> int:
        return setup.train.epochs - (round(settings.pull_share * setup.train.epochs) if settings.pull_weight else 0)


def prototype_alignment(
    prediction: Float[Tensor, "B D"],
    target: Float[Tensor, "B D"],
    labels: Int[Tensor, " B"],
    temperature: float,
    clusters: int | None = None,
) -> Float[Tensor, ""]:
    """Pull each cluster's prototype to its counterpart in the other view: −mean_k p_k·μ'_k / τ (Eq. 5, first term).

    p_k is the normalised sum of the cluster's normalised predictions. Clusters with no image in the batch, and
    images labelled -1, take no part; without any the loss is 0. No gradient reaches the target.
    """
    members, present = membership(labels, prediction.dtype, clusters)
    ours, twins = prototypes(prediction, members), prototypes(target.detach(), members)
    return -mean_of_present((ours * twins).sum(dim=1), present) / temperature


def prototype_uniformity(
    online: Float[Tensor, "B D"], labels: Int[Tensor, " B"], temperature: float, clusters: int | None = None
) -> Float[Tensor, ""]:
    """Push cluster prototypes apart: mean_k log Σ_{j≠k} exp(μ_k·μ_j / τ) (Eq. 5, second term).

    Clusters with no image in the batch, and images labelled -1, take no part; with one cluster the loss is 0.
    """
    members, present = membership(labels, online.dtype, clusters)
    ours = prototypes(online, members)
    others = present & ~torch.eye(len(ours), dtype=torch.bool, device=ours.device)
    scattered = present & others.any(dim=1)
    logits = (ours @ ours.T / temperature).masked_fill(~others, -torch.inf)
    # A row without another cluster would be −inf: it is set to 0 and left out of the mean.
    sums = torch.logsumexp(torch.where(scattered[:, None], logits, 0), dim=1)
    return mean_of_present(sums, scattered)
