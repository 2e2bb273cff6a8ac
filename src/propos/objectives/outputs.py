"""What the networks made of the global batch, and what an objective makes of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from jaxtyping import Float, Int
from torch import Tensor

Pair = tuple[Float[Tensor, "B D"], Float[Tensor, "B D"]]


@dataclass(frozen=True)
class Outputs:
    """Tensors of both views of the global batch, all raw (not normalised)."""

    projections: Pair  # online
    predictions: Pair  # of projection + σε
    targets: Pair  # no gradient flows into these


class Objective(Protocol):
    """A stateless loss: it never gathers, logs or draws."""

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        ...
