"""BYOL with CC's cluster head: a combination of ProPos's paper."""

from __future__ import annotations

from torch import Tensor, nn

from propos.config import Positive
from propos.losses import alignment, both_ways, cluster_balance, cluster_contrast
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.methods.stage import Rate, Stage
from propos.networks import EmaCopy, Encoder, Mlp, initialise_small


class ByolCc(Method):
    """Align each image with its other view, and contrast clusters by a head whose softmax assigns images to them."""

    class Settings(MethodSettings):
        """The predictor's learning rate, relative to the network's, and the temperature of the contrast."""

        predictor_rate: Positive = 10.0
        cluster_temperature: Positive = 1.0

    title = "BYOL + CC"
    year, reference = 2022, "ProPos's paper (arXiv 2111.11821)"
    verified = "the weight is our reading"
    has_head = True
    has_predictor = True

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        hidden, dimension = setup.network.hidden, setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, hidden, dimension))
        self.target: EmaCopy[Encoder] = EmaCopy(self.online)
        self.predictor: nn.Module = Mlp(dimension, hidden, dimension)
        initialise_small(self.predictor)
        width = self.online.features
        self.cluster_head = Mlp(width, width, setup.clusters, norm=False)

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        return (Stage(rates={"predictor": Rate(settings.predictor_rate)}),)

    @property
    def embedder(self) -> Encoder:
        """The target network."""
        return self.target.module

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the alignment of both directions, the contrast of clusters and their balance in both views."""
        a, b = batch.views()
        features = ctx.encode(self.online.backbone, a, b)
        predictions = ctx.encode(self.predictor, *ctx.encode(self.online.projector, *features))
        targets = ctx.encode(self.target, a, b, shuffled=True)
        logits = ctx.encode(self.cluster_head, *features)
        pa, pb, ta, tb, *logits = ctx.gather(*predictions, *targets, *logits)
        ya, yb = (each.softmax(dim=1) for each in logits)
        ctx.report_embeddings(ta, tb)
        return {
            "alignment": alignment(*both_ways((pa, tb), (pb, ta))),
            "cluster_contrast": cluster_contrast(ya, yb, self.settings.cluster_temperature),
            "cluster_balance": cluster_balance(ya) + cluster_balance(yb),
        }

    def assign(self, features: Tensor) -> Tensor:
        """Return the cluster head's logits."""
        logits: Tensor = self.cluster_head(features)
        return logits

    def after_step(self, ctx: StepContext) -> None:
        """Move the target network."""
        self.target.move(ctx.momentum)
