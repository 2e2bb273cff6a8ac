"""CoNR: a stage on top of BYOL in which images predict their neighbours (Yu et al., NeurIPS 2023)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.common.errors import InputError
from propos.config import Count, NotNegative
from propos.losses import symmetric
from propos.methods.base import Batch, StepContext
from propos.methods.pretext import BuildsOn, PretextSettings, PretextShare, has_predictor, own_epochs
from propos.methods.setup import Setup
from propos.methods.stage import Stage

EXPANSION = 2  # nearest images, the image itself included, whose neighbours are averaged (query expansion)
FIRST_SHARE = 0.8  # of a batch that is used at first: images that do not lie between clusters
RISE = 0.25  # of the epochs (50 of 200), after which all images are used
SMALLEST_CROP = 0.45  # of an image's area
# Of the learning rate, the predictor's too: a tenth of what a cosine over 1,000 epochs has left at the authors' 800th.
RATE = 0.015
ROUNDS = 2  # of query expansion
TIE = 1e-5  # of the cosine, so that of two images with the same surroundings the nearer comes first


class ConR(BuildsOn):
    """Align each image with its neighbours in the batch, re-ranked by the neighbours they share, on a trained network.

    Deviations from the public code: of the images used, the last is used too; the learning rate follows a cosine of its
    own, and the target's momentum, where it rises, rises again. A pretext without a predictor is refused: nothing would
    prevent its embeddings from collapsing.
    """

    class Settings(PretextSettings):
        """The neighbours in the batch, and the weight of the loss."""

        pretext: str = "byol"
        pretext_share: PretextShare = 0.8
        neighbours: Count = 10
        neighbours_weight: NotNegative = 1.0

    title = "CoNR"
    year, reference = 2023, "Yu et al., NeurIPS (arXiv 2312.07806)"
    verified = "terms and settings against its public code"

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        self.add_target()

    @classmethod
    def own_stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return the refinement."""
        if not has_predictor(settings):
            raise InputError(
                f'pretext = "{settings.pretext}": has no predictor to predict neighbours with; choose byol or propos'
            )
        trains = ("pretext.online", "pretext.predictor")
        train = {"lr": RATE * setup.train.lr, "warmup": 0, "schedule": "cosine"}
        return (Stage("refining", 1.0, trains, train, first_clusters=0),)

    def own_losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the alignment of both directions, each with the neighbours that its targets have."""
        smallest, largest = self.setup.views.crop_scale
        a, b = batch.views(crop_scale=(min(max(smallest, SMALLEST_CROP), largest), largest))
        assert self.pretext.predictor is not None
        pa, pb = ctx.encode(self.pretext.predictor, *ctx.encode(self.online, a, b))
        ta, tb = ctx.encode(self.embedder, a, b, shuffled=True)
        pa, pb, ta, tb = ctx.gather(pa, pb, ta, tb)
        ctx.report_embeddings(ta, tb)
        if not batch.clustered:
            return {}
        rise = max(1, round(RISE * own_epochs(self.settings, self.setup)))
        shared = batch.labels, ctx.prototypes, kept_share(ctx.epoch, rise), self.settings.neighbours
        loss = symmetric(neighbour_alignment, (pa, tb), (pb, ta), *shared)
        return {"neighbours": self.settings.neighbours_weight * loss}


def kept_share(epoch: int, rise: int) -> float:
    """Return the share of a batch that is used in an epoch: all of it after `rise` epochs."""
    left = 1 - min(1.0, (epoch + 1) / rise)
    return 1 - (1 - FIRST_SHARE) * left


def neighbour_alignment(
    prediction: Float[Tensor, "B D"],
    target: Float[Tensor, "B D"],
    labels: Int[Tensor, " B"],
    prototypes: Float[Tensor, "K D"],
    share: float,
    count: int,
) -> Float[Tensor, ""]:
    """Align the images inside clusters with the neighbours that their targets have in the batch."""
    kept = inside_clusters(target, labels, prototypes, share)
    return alignment_with(prediction, target, reranked(target, count, EXPANSION), kept)


def alignment_with(
    prediction: Float[Tensor, "B D"],
    target: Float[Tensor, "B D"],
    neighbours: Int[Tensor, "B k"],
    kept: Bool[Tensor, " B"],
) -> Float[Tensor, ""]:
    """Pull the predictions of the images that are used to the targets of their neighbours.

    1/(B k) · Σ_{i kept} Σ_{j ∈ N(i)} ‖p_i − t_j‖², p and t unit vectors: the mean is over all pairs, so that a
    batch in which fewer images are used pulls less.
    """
    cosines = F.normalize(prediction, dim=1) @ F.normalize(target, dim=1).T
    return ((2 - 2 * cosines.gather(1, neighbours)) * kept[:, None]).mean()


def reranked(keys: Float[Tensor, "B D"], count: int, wide: int) -> Int[Tensor, "B count"]:
    """Return the neighbours of each image in the batch, re-ranked by shared neighbours; mostly itself first.

    A_ij is 1 where j is among the `count` nearest of i by cosine, i itself included, and 0 elsewhere. Then, twice,
    A ← A + Aᵀ; A_i ← Σ_j cos²(z_i, z_j) A_j over the `wide` nearest j of i; rows are normalised. The `count` with the
    largest A_i·A_j are returned, the nearest of ties; in a batch of fewer images, all.
    """
    unit = F.normalize(keys.detach(), dim=1)
    cosines = unit @ unit.T
    closeness, nearest = cosines.topk(min(count, len(unit)), dim=1)
    around = torch.zeros_like(cosines).scatter(1, nearest, 1.0)
    weights = torch.zeros_like(cosines).scatter(1, nearest[:, :wide], closeness[:, :wide].square())
    for _ in range(ROUNDS):
        around = F.normalize(weights @ (around + around.T), dim=1)
    return (around @ around.T + TIE * cosines).topk(nearest.shape[1], dim=1).indices


def inside_clusters(
    keys: Float[Tensor, "B D"], labels: Int[Tensor, " B"], prototypes: Float[Tensor, "K D"], share: float
) -> Bool[Tensor, " B"]:
    """Return which images are the share of the batch that lies least between clusters.

    They are ranked by the distance from their own cluster's prototype over that from the nearest other one. Images
    labelled -1 are never among them.
    """
    cosines = F.normalize(keys.detach(), dim=1) @ F.normalize(prototypes, dim=1).T
    distances = (2 - 2 * cosines).clamp(min=0).sqrt()
    place = labels.clamp(min=0)[:, None]
    own, others = distances.gather(1, place)[:, 0], distances.scatter(1, place, torch.inf)
    ratios = own / others.min(dim=1).values.clamp(min=torch.finfo(own.dtype).tiny)
    known = labels >= 0
    ranks = torch.where(known, ratios, torch.inf).argsort(stable=True).argsort()
    return known & (ranks < int(share * len(labels)))
