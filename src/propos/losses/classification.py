"""Classification into pseudo-labels; every cluster has the same weight."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.losses.common import log_prob
from propos.losses.prototypes import mean_of_present, membership


def balanced_cross_entropy(probabilities: Float[Tensor, "B K"], labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
    """Return −log p at each image's label, averaged over the images of each label and then over the labels.

    Images labelled -1 take no part; without any other the loss is 0.
    """
    members, present = membership(labels, probabilities.dtype, probabilities.shape[1])
    losses = -log_prob(probabilities.gather(1, labels.clamp(min=0)[:, None])[:, 0])
    return mean_of_present((members @ losses) / members.sum(dim=1).clamp(min=1), present)


def self_labelling(
    plain: Float[Tensor, "B K"], strong: Float[Tensor, "B K"], threshold: float, threshold_per_cluster: bool = False
) -> Float[Tensor, ""]:
    """Classify strong views into the clusters that their plain views are confidently assigned to.

    An image takes part if its largest p(plain) is above the threshold; every cluster has the same weight. Without such
    an image the loss is 0. No gradient reaches the plain views.
    """
    confidence, cluster = plain.detach().max(dim=1)
    confident = confidence > threshold
    if threshold_per_cluster:
        labels = torch.where(confident, cluster, -1)
        confident = confident.any() & (confidence > thresholds(labels, plain.shape[1], threshold)[cluster])
    return balanced_cross_entropy(strong, torch.where(confident, cluster, -1))


def thresholds(labels: Int[Tensor, " B"], clusters: int, threshold: float) -> Float[Tensor, " K"]:
    """Return a threshold for each cluster, given the clusters of the confident images (else -1).

    τ β / (2 − β), with β the number of a cluster's confident images over that of the cluster with most (FlexMatch,
    Zhang et al., NeurIPS 2021). With one threshold for all, a cluster without confident images would label nothing and
    lose its images to the others.
    """
    counts = torch.zeros(clusters, device=labels.device).index_add(0, labels.clamp(min=0), (labels >= 0).float())
    shares = counts / counts.max().clamp(min=1)
    return threshold * shares / (2 - shares)
