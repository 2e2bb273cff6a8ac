"""Images held to where they belonged among centres, and to what their other view says of them (SeCu)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.objective import mean_of_directions
from propos.outputs import Outputs


def centre_agreement(
    embeddings: Float[Tensor, "B D"],
    others: Float[Tensor, "B D"],
    centres: Float[Tensor, "K D"],
    labels: Int[Tensor, " B"],
    temperature: float,
    share: float,
) -> Float[Tensor, ""]:
    """Tell where an image belongs as its label does, for a share, and as its other view does for the rest.

    −mean_i Σ_k [share · 1(y_i = k) + (1 − share) · q_ik] log p_ik, with p and q the softmax over centres of
    z·c_k / τ for the view and for the other one. No gradient reaches the other view or the centres, which are unit
    vectors.
    """
    centres = centres.detach()
    said = F.log_softmax(F.normalize(embeddings, dim=1) @ centres.T / temperature, dim=1)
    other = F.softmax(F.normalize(others.detach(), dim=1) @ centres.T / temperature, dim=1)
    of_label = said.gather(1, labels[:, None])[:, 0]
    return -(share * of_label + (1 - share) * (other * said).sum(dim=1)).mean()


class CentreAgreement:
    """The agreement of both directions with each set of centres as the epoch began, averaged."""

    def __init__(self, temperature: float, share: float) -> None:
        self.temperature, self.share = temperature, share

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        first, second = outputs.projections

        def of_direction(view: Tensor, other: Tensor) -> Tensor:
            losses = [
                centre_agreement(view, other, each.before, each.earlier, self.temperature, self.share)
                for each in outputs.centres
            ]
            return torch.stack(losses).mean()

        return mean_of_directions(of_direction, (first, second), (first, second))
