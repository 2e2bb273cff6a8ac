"""Prototypes of the clusters present in a batch (Eqs. 6-7).

Shapes depend on the numbers of clusters and images alone, never on which clusters are present: the host would have to
wait for a GPU to learn that. Clusters without an image have a row too, and a mask excludes it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


def membership(
    labels: Int[Tensor, " B"], dtype: torch.dtype, clusters: int | None
) -> tuple[Float[Tensor, "P B"], Bool[Tensor, " P"]]:
    """Return a row of zeros and ones for each cluster, and whether an image of it is in the batch.

    Images labelled -1 are in no cluster. With more clusters than images there are as many rows as images. Without a
    number of clusters the largest label gives it, for which the host waits for a GPU.
    """
    if clusters is None:
        clusters = max(1, int(labels.max()) + 1)
    if clusters > len(labels):
        labels, clusters = _ranks(labels), len(labels)
    members = labels == torch.arange(clusters, device=labels.device)[:, None]
    return members.to(dtype), members.any(dim=1)


def prototypes(embeddings: Float[Tensor, "*V B D"], members: Float[Tensor, "P B"]) -> Float[Tensor, "*V P D"]:
    """Return the normalised sum of each cluster's normalised embeddings; 0 where there are none."""
    return F.normalize(members @ F.normalize(embeddings, dim=-1), dim=-1)


def mean_of_present(values: Float[Tensor, "*V P"], present: Bool[Tensor, " P"]) -> Float[Tensor, ""]:
    """Return the mean over the clusters that are present; 0 without any."""
    present = present.expand_as(values)
    return torch.where(present, values, 0).sum() / present.sum().clamp(min=1)


def _ranks(labels: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
    """Return the rank of each label among the labels that occur; -1 stays."""
    ascending, order = labels.sort()
    new = (ascending != ascending.roll(1)).long()
    places = new.cumsum(dim=0) - new[0]
    return torch.where(labels >= 0, torch.empty_like(labels).scatter_(0, order, places), -1)
