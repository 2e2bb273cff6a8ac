"""DCBoost: a stage on top of a trained clusterer (Li et al., NeurIPS 2025)."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from propos.config import NotNegative
from propos.losses import alignment, both_ways, confident_labels, confident_pull, membership, prototypes, symmetric
from propos.methods.base import Batch, StepContext
from propos.methods.images import AllImages
from propos.methods.pairs import Pairs
from propos.methods.pretext import BuildsOn, PretextSettings, PretextShare, has_predictor, own_epochs
from propos.methods.setup import Setup
from propos.methods.stage import Rate, Stage
from propos.networks import Float32, Mlp, initialise_small

HIDDEN = 512  # of a predictor that the pretext does not have
PREDICTOR_RATE = 10.0
RATE = 0.1  # of the learning rate: about a cosine over 1,000 epochs at epoch 800, where the authors start
PREDICTOR_ALONE = 0.05  # of the epochs (10 of their 200): a new predictor is trained before clusters are pulled


class DcBoost(BuildsOn):
    """Pull the images of each cluster together whose neighbours agree with them, on a network another method trained.

    Its public code (github.com/l-h-y168/DCBoost) was not read: no copy of it could be reached. The terms are third
    parties' notes that fit the paper's prose. Unverified: the normaliser of the
    push (here the mean over pairs), projections before the predictor, neighbours other than the image itself, by the
    target's embeddings alone, both directions averaged, and the learning rate.
    """

    class Settings(PretextSettings):
        """The noise of positive sampling."""

        pretext: str = "propos"
        pretext_share: PretextShare = 0.8
        sigma: NotNegative = 0.001  # σ

    title = "DCBoost"
    year, reference = 2025, "Li, Jia, Liu and Hou, NeurIPS (arXiv 2511.21193)"
    verified = "only against its paper; its code was not read; see the docs"
    inputs = ("images", "features")

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        if not self.pretext.trains:  # a pretrained network's features alone
            self.online.projector = identity_layer(self.online.features)
            self.good_initial_embeddings = True
        self.add_target()
        self.clusters_start = clusters_start(settings, setup)
        if not has_predictor(settings):
            width = self.online.dimension
            self.predictor = Mlp(width, HIDDEN, width)
            initialise_small(self.predictor)
        self.pairs = Pairs(setup)

    @classmethod
    def own_stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return the boost."""
        from_features = setup.start.network is not None
        predictors = ("pretext.predictor", "predictor")
        return (
            Stage(
                "boost",
                trains=("pretext.online.projector" if from_features else "pretext.online", *predictors),
                train={"lr": RATE * setup.train.lr, "warmup": 0, "schedule": "cosine"},
                rates=dict.fromkeys(predictors, Rate(PREDICTOR_RATE)),
                first_clusters=clusters_start(settings, setup),
                tables_every=0 if from_features else None,
            ),
        )

    def own_losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the alignment of images and, among images whose neighbours agree, the pull and the push."""
        predictor = self.predictor or self.pretext.predictor
        assert predictor is not None
        a, b = self.pairs.inputs(batch)
        za, zb = ctx.encode(self.pairs.part(self.online), a, b)
        ta, tb = ctx.encode(self.pairs.part(self.embedder), a, b, shuffled=True)
        na, nb = ctx.noise_like(za, zb, sigma=self.settings.sigma)
        pa, pb = ctx.encode(predictor, za + na, zb + nb)
        za, zb, ta, tb, pa, pb = ctx.gather(za, zb, ta, tb, pa, pb)
        ctx.report_embeddings(*((ta, tb) if self.pairs.symmetric else (ta,)))
        losses = {"instances": alignment(*both_ways((pa, tb), (pb, ta)))}
        if batch.clustered and ctx.epoch >= self.clusters_start:
            for name, loss in (("pull", confident_pull), ("push", confident_push)):
                losses[name] = symmetric(loss, (za, tb), (zb, ta), batch.labels, ctx.clusters)
        return losses

    def own_tables(self, images: AllImages, ctx: StepContext) -> None:
        """Find the neighbours that replace second views."""
        self.pairs.make_tables(self.embedder, images)


def clusters_start(settings: DcBoost.Settings, setup: Setup) -> int:
    """Return the epoch from which clusters are pulled: a new predictor is trained alone first."""
    epochs = own_epochs(settings, setup)
    return 0 if has_predictor(settings) else min(max(1, round(PREDICTOR_ALONE * epochs)), epochs - 1)


def identity_layer(width: int) -> nn.Module:
    """Return a linear layer that starts as the identity."""
    layer = nn.Linear(width, width)
    nn.init.eye_(layer.weight)
    nn.init.zeros_(layer.bias)
    return Float32(layer)


def confident_push(
    online: Float[Tensor, "B D"], target: Float[Tensor, "B D"], labels: Int[Tensor, " B"], clusters: int | None = None
) -> Float[Tensor, ""]:
    """Push each cluster's prototype from the targets' prototypes of the others: −mean_{a≠b} ‖μ_a − μ'_b‖².

    Prototypes are of images whose neighbours in the batch agree. Clusters with no image in the batch, and images
    labelled -1, take no part; with one cluster the loss is 0. No gradient reaches the target.
    """
    members, present = membership(confident_labels(target, labels), online.dtype, clusters)
    ours, theirs = prototypes(online, members), prototypes(target.detach(), members)
    itself = torch.eye(len(ours), dtype=torch.bool, device=ours.device)
    pairs = present & present[:, None] & ~itself
    apart = torch.where(pairs, 2 - 2 * ours @ theirs.T, 0).sum()
    return -apart / pairs.sum().clamp(min=1)
