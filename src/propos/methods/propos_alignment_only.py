"""ProPos whose prototypes are only aligned, not pushed apart: an ablation of its paper."""

from __future__ import annotations

from propos.methods.propos import ProPos
from propos.methods.variant import variant


@variant(ProPos, prototypes="aligned", contrast_weight=0.0, pull_weight=0.0)
class ProPosAlignmentOnly:
    """ProPos that pulls each prototype to its twin in the other view but does not push prototypes apart."""

    title = "ProPos with alignment only"
    reference = "ProPos's ablation (arXiv 2111.11821)"
    inputs, tunes = ("images",), False
