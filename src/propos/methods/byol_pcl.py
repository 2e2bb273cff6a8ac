"""BYOL with PCL's prototypes: a combination of ProPos's paper."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from propos.config import NotNegative, Positive
from propos.losses import alignment, both_ways
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.clusterings import Clusterings, Numbers, check_clusters, starts_after_warmup
from propos.methods.images import Clustered
from propos.methods.setup import Setup
from propos.methods.stage import Rate, Stage
from propos.networks import EmaCopy, Encoder, Mlp, initialise_small


class ByolPcl(Method):
    """Align each image with its other view; after the warm-up, contrast projections with several clusterings' centres.

    The paper does not say whether projections or predictions are contrasted with prototypes.
    """

    class Settings(MethodSettings):
        """The predictor's learning rate, relative to the network's, and PCL's clusterings."""

        predictor_rate: Positive = 10.0
        prototypes_weight: NotNegative = 0.01
        clusters: Numbers = (250, 500, 1000)  # of each clustering
        concentration: Positive = 1.0  # the mean of the prototypes' temperatures

    title = "BYOL + PCL"
    year, reference = 2022, "ProPos's paper (arXiv 2111.11821)"
    verified = "which projections are compared is our reading"
    has_predictor = True

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        hidden, dimension = setup.network.hidden, setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, hidden, dimension))
        self.target: EmaCopy[Encoder] = EmaCopy(self.online)
        self.predictor: nn.Module = Mlp(dimension, hidden, dimension)
        initialise_small(self.predictor)
        self.clusterings = Clusterings(settings.clusters, setup.images, dimension)

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        rates, starts = (
            {"predictor": Rate(settings.predictor_rate)},
            starts_after_warmup(settings.prototypes_weight, setup),
        )
        return (Stage(rates=rates, first_clusters=setup.train.warmup, starts=starts),)

    @classmethod
    def check(cls, settings: Settings, setup: Setup, distinct: Callable[[int], int]) -> None:
        """Refuse more clusters than there are different images."""
        check_clusters(settings.clusters, "byol-pcl.clusters", distinct)

    @property
    def embedder(self) -> Encoder:
        """The target network."""
        return self.target.module

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the alignment of both directions, and ProtoNCE once there are clusterings."""
        settings = self.settings
        a, b = batch.views()
        za, zb = ctx.encode(self.online, a, b)
        ta, tb = ctx.encode(self.target, a, b, shuffled=True)
        pa, pb = ctx.encode(self.predictor, za, zb)
        za, zb, ta, tb, pa, pb = ctx.gather(za, zb, ta, tb, pa, pb)
        ctx.report_embeddings(ta, tb)
        losses = {"alignment": alignment(*both_ways((pa, tb), (pb, ta)))}
        if settings.prototypes_weight and batch.clustered and ctx.epoch >= self.setup.train.warmup:
            losses["prototypes"] = settings.prototypes_weight * self.clusterings.contrast(batch.images, za, zb)
        return losses

    def after_clustering(self, clustered: Clustered, ctx: StepContext) -> None:
        """Find the clusterings, from the end of the warm-up on."""
        if ctx.epoch >= self.setup.train.warmup:
            self.clusterings.find(clustered, self.settings.concentration)

    def after_step(self, ctx: StepContext) -> None:
        """Move the target network."""
        self.target.move(ctx.momentum)
