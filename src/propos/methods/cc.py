"""CC, contrastive clustering (Li et al., AAAI 2021): images contrasted by rows, clusters by columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from propos.config import Positive
from propos.losses import cluster_balance, cluster_contrast, nt_xent
from propos.methods.base import Batch, Method, MethodSettings, StepContext
from propos.methods.setup import Setup
from propos.networks import Mlp


class Cc(Method):
    """Contrast images by one head and clusters by another, whose softmax assigns images to clusters."""

    class Settings(MethodSettings):
        """The temperatures of both contrasts."""

        temperature: Positive = 0.5
        cluster_temperature: Positive = 1.0

    year, reference = 2021, "Li et al., AAAI (arXiv 2009.09687)"
    verified = "settings against its public code"
    has_head = True
    # The public code uses one device: batch norm sees the whole batch.
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

    def __init__(self, settings: Settings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.settings = settings
        assert setup.clusters is not None
        self.online = setup.encoder(lambda width: Mlp(width, width, setup.network.dimension, norm=False))
        width = self.online.features
        self.cluster_head = Mlp(width, width, setup.clusters, norm=False)

    def losses(self, batch: Batch, ctx: StepContext) -> dict[str, Tensor]:
        """Return the contrast of images, the contrast of clusters and the balance of clusters in both views."""
        features = ctx.encode(self.online.backbone, *batch.views())
        projections = ctx.encode(self.online.projector, *features)
        za, zb, *logits = ctx.gather(*projections, *ctx.encode(self.cluster_head, *features))
        ya, yb = (each.softmax(dim=1) for each in logits)
        ctx.report_embeddings(za, zb)
        return {
            "contrast": nt_xent(za, zb, self.settings.temperature),
            "cluster_contrast": cluster_contrast(ya, yb, self.settings.cluster_temperature),
            "cluster_balance": cluster_balance(ya) + cluster_balance(yb),
        }

    def assign(self, features: Tensor) -> Tensor:
        """Return the cluster head's logits."""
        logits: Tensor = self.cluster_head(features)
        return logits
