"""The concentration of clusters, as in PCL."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.distributed import sum_over_processes

SMOOTHING = 10  # keeps small clusters from looking very tight
PERCENTILES = (0.1, 0.9)


def concentrations(
    points: Float[Tensor, "N D"],
    labels: Int[Tensor, " N"],
    centres: Float[Tensor, "K D"],
    temperature: float,
    sharded: bool = False,
) -> Float[Tensor, " K"]:
    """Return a temperature for each cluster: φ_k = mean‖v − c_k‖ / ln(n_k + 10), their mean scaled to `temperature`.

    Clusters of at most one point take the others' largest value; all are held between the 10th and 90th percentile.
    With `sharded`, each process passes its part of the points.
    """
    clusters = len(centres)
    sizes = torch.bincount(labels, minlength=clusters)
    distances = torch.linalg.vector_norm(points - centres[labels], dim=1)
    sums = distances.new_zeros(clusters).index_add_(0, labels, distances)
    if sharded:
        sizes, sums = sum_over_processes(sizes), sum_over_processes(sums)
    means = sums / sizes.clamp(min=1)
    spreads = torch.where(sizes > 1, means / torch.log(sizes + SMOOTHING), 0.0)
    spreads = torch.where(sizes > 1, spreads, spreads.max())
    low, high = torch.quantile(spreads, torch.tensor(PERCENTILES, dtype=spreads.dtype, device=spreads.device))
    spreads = spreads.clamp(low, high)
    # Points that all lie on their centres leave nothing to scale.
    mean = spreads.mean()
    return torch.where(mean > 0, temperature * spreads / mean, torch.full_like(spreads, temperature))
