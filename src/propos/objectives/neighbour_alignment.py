"""Alignment with the neighbours that an image has in the batch, in place of the image's other view alone (CoNR)."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.objectives.objective import mean_of_directions
from propos.objectives.reranking import inside_clusters, reranked
from propos.outputs import Outputs


def neighbour_alignment(
    prediction: Float[Tensor, "B D"],
    target: Float[Tensor, "B D"],
    neighbours: Int[Tensor, "B k"],
    kept: Bool[Tensor, " B"],
) -> Float[Tensor, ""]:
    """Pull the predictions of the images that are kept to the targets of their neighbours.

    1/(B k) · Σ_{i kept} Σ_{j ∈ N(i)} ‖p_i − t_j‖², p and t unit vectors: the mean is over all pairs, so that a
    batch with fewer images kept pulls less.
    """
    cosines = F.normalize(prediction, dim=1) @ F.normalize(target, dim=1).T
    return ((2 - 2 * cosines.gather(1, neighbours)) * kept[:, None]).mean()


class NeighbourAlignment:
    """The alignment of both directions, averaged, each with the neighbours that its targets have.

    Images between clusters are left out at first: `least` of a batch are kept, and each epoch a few more, until all are
    after `rise` epochs.
    """

    reads_clusters = True

    def __init__(self, count: int, wide: int, least: float, rise: int) -> None:
        self.count, self.wide, self.least, self.rise = count, wide, least, rise

    def share(self, epoch: int) -> float:
        """Return the share of a batch that is kept in an epoch of the stage."""
        left = 1 - min(1.0, (epoch + 1) / self.rise)
        return 1 - (1 - self.least) * left

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        prototypes, share = outputs.prototypes, self.share(outputs.epoch)
        assert prototypes is not None

        def of_direction(prediction: Tensor, target: Tensor) -> Tensor:
            kept = inside_clusters(target, labels, prototypes, share)
            return neighbour_alignment(prediction, target, reranked(target, self.count, self.wide), kept)

        return mean_of_directions(of_direction, outputs.predictions, outputs.targets)
