"""CC with prototype scattering in place of its cluster head: a combination of ProPos's paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field
from torch import Tensor

from propos.config import Config, NotNegative, Positive
from propos.losses import both_ways, nt_xent, prototype_scattering
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.methods.stage import Stage, Start
from propos.networks import Mlp


class CcPsl(Method):
    """Contrast images as CC does, and scatter the prototypes of k-means between the two online views."""

    class Settings(MethodSettings):
        """The temperature of the contrast, and λ_psl, τ and the start of PSL."""

        temperature: Positive = 0.5
        psl_weight: NotNegative = 0.1
        psl_temperature: Positive = 0.5
        psl_start: Annotated[int, Field(ge=0)] | None = None  # the epoch; None: after the warm-up

    title = "CC + PSL"
    year, reference = 2022, "ProPos's paper (arXiv 2111.11821)"
    verified = "the weight is our reading"
    # As CC.
    defaults: ClassVar[Mapping[str, Any]] = {
        "train.optimiser": "adam",
        "train.lr": 3e-4,
        "train.schedule": "constant",
        "train.warmup": 0,
        "train.weight_decay": 0.0,
        "network.bn_groups": 1,
        "network.shuffle_bn": False,
    }
    at_scale: ClassVar[Mapping[str, Any]] = {"network.dimension": 128}
    when_continuing: ClassVar[Mapping[str, Any]] = {"psl_start": 0}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        self.online = setup.encoder(lambda width: Mlp(width, width, setup.network.dimension, norm=False))

    @classmethod
    def stages(cls, settings: Settings, setup: Setup) -> tuple[Stage, ...]:
        """Return its one stage."""
        if not settings.psl_weight:
            return (Stage(),)
        first, setting = cls._psl_start(settings, setup), "train.warmup" if settings.psl_start is None else "psl_start"
        return (Stage(first_clusters=first, starts={"psl": Start(first, "lower", setting)}),)

    @classmethod
    def adapt(cls, recipe: Config, at_scale: bool) -> dict[str, Any]:
        """Start PSL when ProPos does: without a warm-up of its own, after as many epochs as the recipe's takes."""
        start = recipe.sections.get("propos", {}).get("psl_start")
        return {**super().adapt(recipe, at_scale), "cc-psl.psl_start": recipe.train.warmup if start is None else start}

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the contrast of images and, once it has started, PSL between the projections of both views."""
        settings = self.settings
        za, zb = ctx.gather(*ctx.encode(self.online, *batch.views()))
        ctx.report_embeddings(za, zb)
        losses = {"contrast": nt_xent(za, zb, settings.temperature)}
        if settings.psl_weight and batch.clustered and ctx.epoch >= self._psl_start(settings, self.setup):
            ours, theirs = both_ways((za, zb), (zb, za))
            psl = prototype_scattering(ours, theirs, batch.labels, settings.psl_temperature, ctx.clusters)
            losses["psl"] = settings.psl_weight * psl
        return losses

    @staticmethod
    def _psl_start(settings: Settings, setup: Setup) -> int:
        return setup.train.warmup if settings.psl_start is None else settings.psl_start
