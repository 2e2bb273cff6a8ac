"""DCCM's graph: views of images that the cluster head answers alike, plain as they are, are to be answered alike."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.objectives.objective import yes_or_no
from propos.outputs import Outputs


def answered_alike(answers: Float[Tensor, "B K"], above: float) -> Bool[Tensor, "B B"]:
    """Return which images' answers have a cosine of at least `above`; an image is always like itself."""
    unit = F.normalize(answers.detach(), dim=1)
    return (unit @ unit.T >= above) | torch.eye(len(unit), dtype=torch.bool, device=unit.device)


def answered_graph(assignments: Float[Tensor, "B K"], alike: Bool[Tensor, "B B"]) -> Float[Tensor, ""]:
    """Return mean_ij −log(s_ij where i and j are alike, else 1 − s_ij), s_ij the cosine of two assignments."""
    unit = F.normalize(assignments, dim=1)
    return yes_or_no(unit @ unit.T, alike).mean()


class AnsweredGraph:
    """The graph of plain images, asked of each view's assignments, averaged."""

    def __init__(self, above: float) -> None:
        self.above = above

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        assert outputs.again is not None
        alike = answered_alike(outputs.again, self.above)
        first, second = (answered_graph(view, alike) for view in outputs.assignments)
        return (first + second) / 2
