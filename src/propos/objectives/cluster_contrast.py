"""CC's contrast of clusters: columns of assignments in place of rows."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.nt_xent import nt_xent
from propos.outputs import Outputs


def cluster_contrast(
    first: Float[Tensor, "B K"], second: Float[Tensor, "B K"], temperature: float
) -> Float[Tensor, ""]:
    """Tell each cluster's column of assignments in the other view from the 2K − 2 columns of other clusters."""
    return nt_xent(first.T, second.T, temperature)


class ClusterContrast:
    """The contrast of the cluster head's columns between the two views."""

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        return cluster_contrast(*outputs.assignments, self.temperature)
