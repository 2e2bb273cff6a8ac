"""Images pulled to those of a bank that share a cluster with them, among those that are near (LocalAgg)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.outputs import Bank, Outputs

LEAST = 1e-7  # added to a probability, so that its logarithm is finite


def shares_a_cluster(
    rows: Int[Tensor, "B n"], images: Int[Tensor, " B"], clusterings: tuple[Int[Tensor, " N"], ...]
) -> Bool[Tensor, "B n"]:
    """Return which rows of a bank have an image's cluster in any of several clusterings; its own row always does.

    Rows past the images that are clustered, and those labelled -1, are in no cluster.
    """
    shares = rows == images[:, None]
    for labels in clusterings:
        theirs, own = (
            torch.where(places < len(labels), labels[places.clamp(max=len(labels) - 1)], -1)
            for places in (rows, images[:, None])
        )
        shares = shares | ((theirs == own) & (own >= 0))
    return shares


def local_aggregation(
    embeddings: Float[Tensor, "B D"], bank: Bank, temperature: float, background: int
) -> Float[Tensor, ""]:
    """Pull each image to those near it that share a cluster with it, as against all that are near.

    −mean_i log( Σ_{j ∈ B_i ∩ C_i} e^{z_i·v_j/τ} / Σ_{j ∈ B_i} e^{z_i·v_j/τ} + 1e-7 ), B_i the `background` rows of the
    bank with the largest cosine, C_i those that share a cluster with the image. Embeddings are normalised here, the
    bank before. No gradient reaches the bank.
    """
    cosines = F.normalize(embeddings, dim=1) @ bank.embeddings.T
    near, rows = cosines.topk(min(background, cosines.shape[1]), dim=1)
    close = shares_a_cluster(rows, bank.images, bank.clusterings)
    return -((F.softmax(near / temperature, dim=1) * close).sum(dim=1) + LEAST).log().mean()


class LocalAggregation:
    """Local aggregation of both views' projections, averaged.

    Near are the `most` nearest of all images, or as many as `clusters` clusters of a clustering hold, if that is fewer.
    """

    def __init__(self, temperature: float, most: int, clusters: int) -> None:
        self.temperature, self.most, self.clusters = temperature, most, clusters

    def background(self, images: int, found: int) -> int:
        """Return how many of so many images, of which so many clusters were found, are near one."""
        return max(1, min(self.most, round(images * self.clusters / max(1, found))))

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        bank = outputs.bank
        assert bank is not None
        found = max((len(grouping.prototypes) for grouping in outputs.groupings), default=1)
        background = self.background(len(bank.embeddings), found)
        first, second = (local_aggregation(view, bank, self.temperature, background) for view in outputs.projections)
        return (first + second) / 2
