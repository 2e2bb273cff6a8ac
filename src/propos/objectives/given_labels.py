"""Classification of images that have labels, every cluster counting alike: SCAN's, TCL's and SPICE's own labels."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.objective import log_chance
from propos.objectives.prototypes import mean_of_present, membership
from propos.outputs import Outputs


def given_labels(assignments: Float[Tensor, "B K"], labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
    """Return −log p at each image's label, averaged over the images of each label and then over the labels.

    It is the cross-entropy in which a class weighs as many times more as it has fewer images. Images labelled -1 take
    no part; without any other the loss is 0.
    """
    members, present = membership(labels, assignments.dtype, assignments.shape[1])
    surprise = -log_chance(assignments.gather(1, labels.clamp(min=0)[:, None])[:, 0])
    return mean_of_present((members @ surprise) / members.sum(dim=1).clamp(min=1), present)


class GivenLabels:
    """Classification of the second view, or of the first, into the labels that the stage computes of all images."""

    def __init__(self, first: bool = False) -> None:
        self.view = 0 if first else 1

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        return given_labels(outputs.assignments[self.view], outputs.prepared["labels"])
