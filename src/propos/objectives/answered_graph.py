"""DCCM's graph: images that the cluster head answered alike before the epoch are to be answered alike."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.objectives.objective import log_chance
from propos.outputs import Outputs


def answered_alike(answers: Float[Tensor, "B K"], above: float) -> Bool[Tensor, "B B"]:
    """Return which images' answers have a cosine of at least `above`; an image is always like itself.

    Where all are alike, as before batch norm has seen an image, that says nothing: each is like itself alone.
    """
    unit = F.normalize(answers, dim=1)
    alike = unit @ unit.T >= above
    return (alike & ~alike.all()) | torch.eye(len(unit), dtype=torch.bool, device=unit.device)


def answered_graph(
    assignments: Float[Tensor, "B K"], alike: Bool[Tensor, "B B"], known: Bool[Tensor, " B"]
) -> Float[Tensor, ""]:
    """Return mean_ij −log(s_ij where i and j are alike, else 1 − s_ij), s_ij the cosine of two assignments.

    Images that are not known take no part; all pairs are divided by.
    """
    unit = F.normalize(assignments, dim=1)
    cosines = unit @ unit.T
    surprise = -torch.where(alike, log_chance(cosines), log_chance(1 - cosines))
    return (surprise * (known[:, None] & known)).mean()


class AnsweredGraph:
    """The graph of what the head said before the epoch, asked of each view's assignments, averaged."""

    def __init__(self, above: float) -> None:
        self.above = above

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.assignments is not None
        answers = outputs.prepared["answers"][:, outputs.head]
        alike, known = answered_alike(answers, self.above), answers.sum(dim=1) > 0
        first, second = (answered_graph(view, alike, known) for view in outputs.assignments)
        return (first + second) / 2
