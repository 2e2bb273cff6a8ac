"""DCCM's labels: views are put where the cluster head surely puts their plain images, each cluster a question."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.objective import yes_or_no
from propos.outputs import Outputs


def answered_labels(
    assignments: Float[Tensor, "B K"], answers: Float[Tensor, "B K"], above: float
) -> Float[Tensor, ""]:
    """Return mean_i w_i mean_k −log(p_ik where k = y_i, else 1 − p_ik): y_i is where the answer is largest.

    w_i is 1 where that is at least `above`, else 0; all images are divided by. No gradient reaches the answers.
    """
    sureness, label = answers.detach().max(dim=1)
    said = torch.arange(answers.shape[1], device=label.device) == label[:, None]
    return (yes_or_no(assignments, said).mean(dim=1) * (sureness >= above)).mean()


class AnsweredLabels:
    """The labels of plain images, asked of both views, averaged; the plain images are the step's further view."""

    def __init__(self, above: float) -> None:
        self.above = above

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        assert outputs.again is not None
        first, second = (answered_labels(view, outputs.again, self.above) for view in outputs.assignments)
        return (first + second) / 2
