"""Prototype scattering without its uniformity: the ablation that only aligns prototypes."""

from __future__ import annotations

from functools import partial

from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.objective import mean_of_directions
from propos.objectives.prototypes import mean_of_present, membership, prototypes
from propos.outputs import Outputs


def prototype_alignment(
    prediction: Float[Tensor, "B D"],
    target: Float[Tensor, "B D"],
    labels: Int[Tensor, " B"],
    temperature: float,
    clusters: int | None = None,
) -> Float[Tensor, ""]:
    """Hold each cluster's prototype to its twin in the other view: −mean_k p_k·μ'_k / τ.

    p_k is the normalised sum of the cluster's normalised predictions. Clusters with no image in the batch, and
    images labelled -1, take no part; without any the loss is 0. No gradient reaches the target.
    """
    members, present = membership(labels, prediction.dtype, clusters)
    ours, twins = prototypes(prediction, members), prototypes(target.detach(), members)
    return -mean_of_present((ours * twins).sum(dim=1), present) / temperature


class PrototypeAlignment:
    """The alignment of prototypes in both directions, averaged; the queue's entries join the batch's."""

    reads_clusters = True

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        labels, clusters = outputs.labels_with_queue(labels), outputs.clusters
        loss = partial(prototype_alignment, labels=labels, temperature=self.temperature, clusters=clusters)
        predictions, targets = outputs.with_queue(outputs.predictions), outputs.with_queue(outputs.targets)
        return mean_of_directions(loss, predictions, targets)
