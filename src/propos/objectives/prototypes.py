"""Prototypes of the clusters present in a batch (Eqs. 6-7)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def membership(labels: Int[Tensor, " B"], dtype: torch.dtype) -> Float[Tensor, "P B"]:
    """Return a row of zeros and ones for each cluster present in the batch; labels of -1 are in none."""
    present = torch.unique(labels)
    present = present[present >= 0]
    members: Tensor = labels == present[:, None]
    return members.to(dtype)


def prototypes(embeddings: Float[Tensor, "B D"], members: Float[Tensor, "P B"]) -> Float[Tensor, "P D"]:
    """Return the normalised sum of each cluster's normalised embeddings."""
    return F.normalize(members @ F.normalize(embeddings, dim=1), dim=1)
