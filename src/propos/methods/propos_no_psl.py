"""ProPos without prototype scattering: an ablation of its paper."""

from __future__ import annotations

from propos.methods.propos import ProPos
from propos.methods.variant import variant


@variant(ProPos, psl_weight=0.0, contrast_weight=0.0, pull_weight=0.0)
class ProPosNoPsl:
    """Align each image with noisy neighbours of its other view; there are no prototypes."""

    title = "ProPos without PSL"
    reference = "ProPos's ablation (arXiv 2111.11821)"
    inputs, tunes = ("images",), False
