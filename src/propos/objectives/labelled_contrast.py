"""TCL's contrast of images some of which have labels: those of one label are not told apart."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.objectives.nt_xent import nt_xent
from propos.outputs import Outputs


def labelled_contrast(
    first: Float[Tensor, "B D"], second: Float[Tensor, "B D"], labels: Int[Tensor, " B"], temperature: float
) -> Float[Tensor, ""]:
    """Tell each row's other view from the rows of images that have not its label.

    −mean_i log exp(cos(z_i, z_i⁺)/τ) / Σ_j exp(cos(z_i, z_j)/τ), over z_i⁺ and all rows of other images but those with
    the label of i. Images labelled -1 are told from all.
    """
    others = ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    alike = (labels[:, None] == labels) & (labels >= 0)[:, None] & others
    return nt_xent(first, second, temperature, alike)


class LabelledContrast:
    """The contrast of the projections of the two views, by the labels that the stage computes of all images."""

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, outputs: Outputs, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Return the loss of the batch."""
        return labelled_contrast(*outputs.projections, outputs.prepared["labels"], self.temperature)
