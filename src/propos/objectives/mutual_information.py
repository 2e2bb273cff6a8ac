"""IIC's mutual information between the clusters of an image and those of its other view."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from propos.outputs import Outputs

LEAST = 1e-12  # a share, whose logarithm is finite


def mutual_information(first: Float[Tensor, "B K"], second: Float[Tensor, "B K"]) -> Float[Tensor, ""]:
    """Make one view's cluster tell the other's, in clusters that are told from each other: −I(k; k').

    −Σ_kl J_kl log(J_kl / (J_k J_l)), J the mean over images of p_i(k) q_i(l), made symmetric, and J_k its sums. It is
    −log K where every image is surely in one of K equal clusters in both views, and 0 where the views tell nothing.
    """
    joint = first.T @ second / len(first)
    joint = (joint + joint.T) / 2
    shares = joint.sum(dim=1).clamp(min=LEAST).log()
    return -(joint * (joint.clamp(min=LEAST).log() - shares[:, None] - shares)).sum()


class MutualInformation:
    """The information of the cluster head's two views; the gradient flows through both."""

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        return mutual_information(*outputs.assignments)
