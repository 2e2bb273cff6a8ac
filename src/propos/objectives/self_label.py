"""SCAN's self-labelling: where the cluster head is sure, its answer is the label of another view."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.given_labels import given_labels
from propos.outputs import Outputs


def self_label(
    plain: Float[Tensor, "B K"], strong: Float[Tensor, "B K"], above: float, by_cluster: bool = False
) -> Float[Tensor, ""]:
    """Put the strong views of images where their plain ones surely are.

    Of the images whose largest p(plain) is above the threshold, the cross-entropy −log p(strong) at that cluster,
    averaged over the images of each cluster and then over the clusters: each counts alike. Without such an image the
    loss is 0. No gradient reaches the plain views. With `by_cluster`, clusters have thresholds of their own.
    """
    sureness, cluster = plain.detach().max(dim=1)
    sure = sureness > above
    if by_cluster:
        sure = sure.any() & (sureness > thresholds(torch.where(sure, cluster, -1), plain.shape[1], above)[cluster])
    return given_labels(strong, torch.where(sure, cluster, -1))


def thresholds(sure: Int[Tensor, " B"], clusters: int, above: float) -> Float[Tensor, " K"]:
    """Return from which assignment on each cluster labels images, given the clusters of the sure ones (else −1).

    τ β / (2 − β), β the share of a cluster's sure images in those of the cluster that has most (FlexMatch, Zhang et
    al., NeurIPS 2021). A cluster that is sure of none labels all of its own, where with one threshold for all it would
    label nothing, and lose its images to those that do.
    """
    counts = torch.zeros(clusters, device=sure.device).index_add(0, sure.clamp(min=0), (sure >= 0).float())
    shares = counts / counts.max().clamp(min=1)
    return above * shares / (2 - shares)


class SelfLabel:
    """Self-labelling of the second view by the first."""

    def __init__(self, above: float, by_cluster: bool = False) -> None:
        self.above, self.by_cluster = above, by_cluster

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        return self_label(*outputs.assignments, self.above, self.by_cluster)
