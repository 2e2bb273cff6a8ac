"""ProPos without positive sampling: an ablation of its paper."""

from __future__ import annotations

from propos.methods.propos import ProPos
from propos.methods.variant import variant


@variant(ProPos, sigma=0.0, contrast_weight=0.0, pull_weight=0.0)
class ProPosNoPsa:
    """Align each image with its other view, without noise, and scatter the clusters' prototypes."""

    title = "ProPos without PSA"
    reference = "ProPos's ablation (arXiv 2111.11821)"
    inputs, tunes = ("images",), False
