"""LFSS (Li et al., ICML 2025): images whose embeddings change from epoch to epoch are left out of the prototypes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from propos.config import Fraction, NotNegative, Positive
from propos.losses import alignment, both_ways, mean_of_present, membership, symmetric
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.images import AllImages
from propos.methods.setup import Setup
from propos.methods.stage import Rate, Stage, Start
from propos.networks import EmaCopy, Encoder, Memory, Mlp, initialise_small


class Lfss(Method):
    """Align views with noise, hold each image to its embedding of the epoch before, and contrast stable prototypes.

    Deviations from the public code: stability compares the targets at the ends of the last two epochs (there the copy
    is made before the comparison, so that both are the same network); prototypes start after the warm-up.
    """

    class Settings(MethodSettings):
        """λ, τ, σ, δ, and the first epoch of the prototypes."""

        stability_weight: NotNegative = 0.1  # λ, of the contrast with the epoch before
        prototypes_weight: NotNegative = 0.1  # λ, of the contrast of prototypes
        temperature: Positive = 0.5  # τ
        sigma: NotNegative = 0.001  # σ
        unstable: Fraction = 0.1  # δ, the share of images that prototypes leave out
        # The epoch from which prototypes take part; None: after the warm-up.
        prototypes_start: Annotated[int, Field(ge=0)] | None = None
        predictor_rate: Positive = 10.0  # the predictor's learning rate, relative to the network's

    year, reference = 2025, "Li, Jia, Liu and Hou, ICML"
    verified = "losses and settings against its public code"
    has_predictor = True
    when_continuing: ClassVar[Mapping[str, Any]] = {"prototypes_start": 0}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        hidden, dimension = setup.network.hidden, setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, hidden, dimension))
        self.target: EmaCopy[Encoder] = EmaCopy(self.online)
        self.previous: EmaCopy[Encoder] = EmaCopy(self.target.module)  # at the end of the epoch before
        self.predictor: nn.Module = Mlp(dimension, hidden, dimension)
        initialise_small(self.predictor)
        self.memory = Memory(unstable=torch.zeros(setup.rows, dtype=torch.bool))

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        rates, start = {"predictor": Rate(settings.predictor_rate)}, cls._start(settings, setup)
        if not settings.prototypes_weight:
            return (Stage(rates=rates, tables_every=1),)
        setting = "train.warmup" if settings.prototypes_start is None else "prototypes_start"
        starts = {"prototypes": Start(start, "lower", setting)}
        return (Stage(rates=rates, first_clusters=start, starts=starts, tables_every=1),)

    @property
    def embedder(self) -> Encoder:
        """The target network."""
        return self.target.module

    def make_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Find the unstable images, then let the present target be the one of the epoch before."""
        settings = self.settings
        if settings.prototypes_weight and ctx.epoch >= self._start(settings, self.setup):
            cosines = F.cosine_similarity(images.apply(self.embedder), images.apply(self.previous.module), dim=1)
            self.memory["unstable"][: len(cosines)] = least_stable(cosines, settings.unstable)
        self.previous.reset()

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the alignment, the contrast with the epoch before and, once it has started, that of prototypes."""
        settings, (a, b) = self.settings, batch.views()
        za, zb = ctx.encode(self.online, a, b)
        ta, tb = ctx.encode(self.embedder, a, b, shuffled=True)
        before = ctx.encode(self.previous, a, b, shuffled=True)
        na, nb = ctx.noise_like(za, zb, sigma=settings.sigma)
        pa, pb = ctx.encode(self.predictor, za + na, zb + nb)
        za, zb, ta, tb, pa, pb, ea, eb = ctx.gather(za, zb, ta, tb, pa, pb, *before)
        ctx.report_embeddings(ta, tb)
        stability = symmetric(contrast_with_before, (za, ea), (zb, eb), settings.temperature)
        losses = {
            "alignment": alignment(*both_ways((pa, tb), (pb, ta))),
            "stability": settings.stability_weight * stability,
        }
        if settings.prototypes_weight and batch.clustered and ctx.epoch >= self._start(settings, self.setup):
            labels = torch.where(self.memory["unstable"][batch.images], -1, batch.labels)
            shared = labels, settings.temperature, ctx.clusters
            prototypes = symmetric(prototype_contrast, (za, tb), (zb, ta), *shared)
            losses["prototypes"] = settings.prototypes_weight * prototypes
        return losses

    def after_step(self, ctx: StepContext) -> None:
        """Move the target network."""
        self.target.move(ctx.momentum)

    @staticmethod
    def _start(settings: Settings, setup: Setup) -> int:
        return setup.train.warmup if settings.prototypes_start is None else settings.prototypes_start


def least_stable(cosines: Float[Tensor, " N"], share: float) -> Bool[Tensor, " N"]:
    """Return which images are below the k-th smallest cosine between two epochs, k being the share of all."""
    place = int(share * len(cosines))
    if place == 0:
        return torch.zeros_like(cosines, dtype=torch.bool)
    return cosines < cosines.kthvalue(place).values


def contrast_with_before(
    online: Float[Tensor, "B D"], before: Float[Tensor, "B D"], temperature: float
) -> Float[Tensor, ""]:
    """Tell each view's embedding of the epoch before from the other images'.

    −mean_i log exp(s_ii/τ) / Σ_{j≠i} exp(s_ij/τ), where s_ij is the cosine of the online projection of
    i and the earlier one of j. No gradient reaches the latter.
    """
    cosines = F.normalize(online, dim=1) @ F.normalize(before.detach(), dim=1).T / temperature
    itself = torch.eye(len(cosines), dtype=torch.bool, device=cosines.device)
    return (cosines.masked_fill(itself, -torch.inf).logsumexp(dim=1) - cosines.diagonal()).mean()


def prototype_contrast(
    online: Float[Tensor, "B D"],
    target: Float[Tensor, "B D"],
    labels: Int[Tensor, " B"],
    temperature: float,
    clusters: int | None = None,
) -> Float[Tensor, ""]:
    """Contrast each cluster's prototype with its twin of the other view, by NT-Xent over the prototypes of both.

    A prototype is the normalised sum of a cluster's projections, which are not normalised themselves. Clusters with no
    image in the batch, and images labelled -1, take no part; with one cluster the loss is 0. No gradient reaches the
    target.
    """
    members, present = membership(labels, online.dtype, clusters)
    rows = F.normalize(torch.cat([members @ online, members @ target.detach()]), dim=1)
    cosines, present = rows @ rows.T / temperature, present.repeat(2)
    own = cosines.diagonal(len(members)).repeat(2)
    itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    # A row of a cluster that is absent keeps itself, so that its sum is finite; it does not count.
    others = cosines.masked_fill(~present | itself, -torch.inf).masked_fill(~present[:, None] & itself, 0)
    return mean_of_present(others.logsumexp(dim=1) - own, present)
