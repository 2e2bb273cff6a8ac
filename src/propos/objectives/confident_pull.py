"""DCBoost's pull: every image that is relied on to every other of its cluster."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.confident import among_agreed
from propos.objectives.prototypes import mean_of_present, membership
from propos.outputs import Outputs


def confident_pull(
    online: Float[Tensor, "B D"],
    target: Float[Tensor, "B D"],
    labels: Int[Tensor, " B"],
    clusters: int | None = None,
) -> Float[Tensor, ""]:
    """Pull the online images of each cluster to its targets.

    ½ · mean_c Σ_{i,j ∈ c} ‖z_i − z'_j‖² / (‖S_c‖ ‖S'_c‖), z unit vectors and S_c their sum over the cluster; it equals
    mean_c [n_c² / (‖S_c‖ ‖S'_c‖) − cos(S_c, S'_c)]. Clusters with no image in the batch, and images labelled -1, take
    no part; without any the loss is 0. The gradient flows through the weights too, and never into the target.
    """
    members, present = membership(labels, online.dtype, clusters)
    ours, theirs = members @ F.normalize(online, dim=1), members @ F.normalize(target.detach(), dim=1)
    ours, theirs = (torch.where(present[:, None], sums, 1.0) for sums in (ours, theirs))
    lengths = ours.norm(dim=1) * theirs.norm(dim=1)
    pulls = (members.sum(dim=1).square() - (ours * theirs).sum(dim=1)) / lengths.clamp(min=1e-6)
    return mean_of_present(pulls, present)


class ConfidentPull:
    """The pull of both directions, averaged, among the images that their nearest in the batch agree with."""

    reads_clusters = True

    def __init__(self, most: int) -> None:
        self.most = most

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        return among_agreed(confident_pull, outputs, labels, self.most)
