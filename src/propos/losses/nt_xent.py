"""NT-Xent, the contrastive loss of SimCLR and CC: the negatives are the other images of the batch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor


def nt_xent(
    first: Float[Tensor, "B D"],
    second: Float[Tensor, "B D"],
    temperature: float,
    alike: Bool[Tensor, "B B"] | None = None,
) -> Float[Tensor, ""]:
    """Contrast each row's other view with the 2B − 2 rows of other images.

    −mean_i log exp(cos(z_i, z_i⁺)/τ) / Σ_{j≠i} exp(cos(z_i, z_j)/τ), over the 2B rows of both views. Images that are
    `alike` are left out of each other's sums.
    """
    rows = F.normalize(torch.cat([first, second]), dim=1)
    itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    left_out = itself if alike is None else itself | alike.repeat(2, 2)
    logits = (rows @ rows.T / temperature).masked_fill(left_out, -torch.inf)
    partners = torch.arange(len(rows), device=rows.device).roll(len(first))
    return F.cross_entropy(logits, partners)
