"""BYOL (Grill et al., NeurIPS 2020): alignment with a moving average, without clusters."""

from __future__ import annotations

from torch import Tensor, nn

from propos.config import Positive
from propos.losses import alignment, both_ways
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.methods.stage import Rate, Stage
from propos.networks import EmaCopy, Encoder, Mlp, initialise_small


class Byol(Method):
    """Align each image with its other view."""

    class Settings(MethodSettings):
        """The predictor's learning rate, relative to the network's."""

        predictor_rate: Positive = 10.0

    year, reference = 2020, "Grill et al., NeurIPS (arXiv 2006.07733)"
    verified = "settings against ProPos's released code"
    has_predictor = True

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        hidden, dimension = setup.network.hidden, setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, hidden, dimension))
        self.target: EmaCopy[Encoder] = EmaCopy(self.online)
        self.predictor: nn.Module = Mlp(dimension, hidden, dimension)
        initialise_small(self.predictor)

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        return (Stage(rates={"predictor": Rate(settings.predictor_rate)}),)

    @property
    def embedder(self) -> Encoder:
        """The target network."""
        return self.target.module

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the alignment of both directions."""
        a, b = batch.views()
        za, zb = ctx.encode(self.online, a, b)
        ta, tb = ctx.encode(self.target, a, b, shuffled=True)
        pa, pb = ctx.encode(self.predictor, za, zb)
        ta, tb, pa, pb = ctx.gather(ta, tb, pa, pb)
        ctx.report_embeddings(ta, tb)
        return {"alignment": alignment(*both_ways((pa, tb), (pb, ta)))}

    def after_step(self, ctx: StepContext) -> None:
        """Move the target network."""
        self.target.move(ctx.momentum)
