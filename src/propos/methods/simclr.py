"""SimCLR (Chen et al., ICML 2020): each image contrasted with all others of the batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from propos.config import Positive
from propos.losses import nt_xent
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.networks import Mlp


class SimClr(Method):
    """Contrast each image's other view with the other images of the batch."""

    class Settings(MethodSettings):
        """The contrast's temperature."""

        temperature: Positive = 0.5

    title = "SimCLR"
    year, reference = 2020, "Chen et al., ICML (arXiv 2002.05709)"
    defaults: ClassVar[Mapping[str, Any]] = {"network.bn_groups": 1, "network.shuffle_bn": False}

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        self.online = setup.encoder(lambda width: Mlp(width, width, setup.network.dimension, norm=False))

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return NT-Xent between the projections of two views."""
        za, zb = ctx.gather(*ctx.encode(self.online, *batch.views()))
        ctx.report_embeddings(za, zb)
        return {"contrast": nt_xent(za, zb, self.settings.temperature)}
