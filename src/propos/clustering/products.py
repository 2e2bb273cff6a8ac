"""Matrix products of float32 rows on a CPU by oneDNN, which torch carries; elsewhere by torch's own.

torch's own are by MKL, which does without AVX-512 on AMD's processors; oneDNN is twice as fast there (docs/kmeans.md).
The operator is one that torch's compiler writes into its graphs. It is not documented, so a torch without it does
without.
"""

from __future__ import annotations

from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor


def dot_products(rows: Float[Tensor, "n D"], others: Float[Tensor, "K D"]) -> Float[Tensor, "n K"]:
    """Return the dot product of each row with each of the others; no gradients."""
    if rows.device.type != "cpu" or not rows.dtype == others.dtype == torch.float32 or not _has_onednn():
        return rows @ others.T
    return _by_onednn(rows, others)


def _by_onednn(rows: Float[Tensor, "n D"], others: Float[Tensor, "K D"]) -> Float[Tensor, "n K"]:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(rows, others, None, "none", [], "")
    return product


@cache
def _has_onednn() -> bool:
    """Return whether this torch has the operator, and oneDNN behind it."""
    try:
        _by_onednn(torch.ones(1, 1, device="cpu"), torch.ones(1, 1, device="cpu"))
    except (AttributeError, RuntimeError):
        return False
    return True
