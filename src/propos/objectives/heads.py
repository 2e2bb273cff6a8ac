"""An objective for each of several cluster heads, or for the one that answers."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.objective import Objective
from propos.outputs import Outputs


class EachHead:
    """The sum of an objective over all cluster heads; the head of the lowest loss is chosen by its summands."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.reads_features = getattr(objective, "reads_features", False)

    def by_head(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, " H"]:
        """Return the loss of the batch for each head."""
        return torch.stack([self.objective(of_head, labels) for of_head in outputs.of_heads()])

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        return self.by_head(outputs, labels).sum()


class OverHeads:
    """The sum of an objective over all over-clustering heads."""

    def __init__(self, objective: Objective) -> None:
        self.objective = EachHead(objective)

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        assert outputs.over_assignments is not None
        return self.objective(replace(outputs, assignments=outputs.over_assignments), labels)


class ChosenHead:
    """An objective for the head that answers, which was chosen in an earlier stage."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        return self.objective(outputs.of_chosen_head(), labels)
