"""CC's contrast of clusters: NT-Xent between columns of assignments instead of rows."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from propos.losses.nt_xent import nt_xent


def cluster_contrast(
    first: Float[Tensor, "B K"], second: Float[Tensor, "B K"], temperature: float
) -> Float[Tensor, ""]:
    """Contrast each cluster's column of assignments in the other view with the 2K − 2 columns of other clusters."""
    return nt_xent(first.T, second.T, temperature)
