"""Full whitening of points (ZCA)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from propos.distributed import sum_over_processes

LEAST = 1e-6  # of the largest variance: smaller ones are rounding errors


def whitened(points: Float[Tensor, "n D"], sharded: bool = False) -> Float[Tensor, "n D"]:
    """Return points centred, divided by the standard deviation of each principal component, and normalised.

    They are rotated back (ZCA), so the arbitrary signs and order of the components do not matter.
    """
    exact = points.double()
    sums = torch.cat([exact.sum(dim=0), exact.new_tensor([len(exact)])])
    sums = sum_over_processes(sums) if sharded else sums
    centred = exact - sums[:-1] / sums[-1]
    products = centred.T @ centred
    covariance = (sum_over_processes(products) if sharded else products) / sums[-1]
    variances, directions = torch.linalg.eigh(covariance)
    wide = variances > LEAST * variances[-1].clamp(min=torch.finfo(torch.float64).tiny)
    scales = torch.where(wide, variances.clamp(min=torch.finfo(torch.float64).tiny).rsqrt(), 0.0)
    return F.normalize(centred @ (directions * scales @ directions.T), dim=1).to(points.dtype)
