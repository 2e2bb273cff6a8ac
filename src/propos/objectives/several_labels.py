"""Classification of images that have several labels each, or none: SPICE's, of heads on frozen features."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.outputs import Outputs


def several_labels(assignments: Float[Tensor, "B K"], labels: Bool[Tensor, "B K"]) -> Float[Tensor, ""]:
    """Return −log softmax(p) at each label of each image, averaged over all labels; without any the loss is 0.

    p is a softmax itself, so that the odds of two clusters never exceed e, and a wrong label costs little more than a
    right one.
    """
    surprise = -F.log_softmax(assignments, dim=1)
    return (surprise * labels).sum() / labels.sum().clamp(min=1)


class SeveralLabels:
    """Classification of both views into the labels that the stage computes of all images for each head."""

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        given = outputs.prepared["prototype labels"][:, outputs.head]
        first, second = (several_labels(view, given) for view in outputs.assignments)
        return (first + second) / 2
