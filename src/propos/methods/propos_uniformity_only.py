"""ProPos whose prototypes are only pushed apart, not aligned: an ablation of its paper."""

from __future__ import annotations

from propos.methods.propos import ProPos
from propos.methods.variant import variant


@variant(ProPos, prototypes="uniform", contrast_weight=0.0, pull_weight=0.0)
class ProPosUniformityOnly:
    """ProPos that pushes prototypes apart but does not pull each to its twin in the other view."""

    title = "ProPos with uniformity only"
    reference = "ProPos's ablation (arXiv 2111.11821)"
    inputs, tunes = ("images",), False
