"""Whether the neighbours that positive sampling draws keep the class of the image they are drawn for."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.evaluation.neighbours import nearest_classes

REPEATS = 10


def preservation_rates(
    bank: Float[Tensor, "N D"],
    classes: Int[Tensor, " N"],
    projections: Float[Tensor, "Q D"],
    sigma: float,
    neighbours: int,
    generator: torch.Generator,
    leave_one_out: bool = False,
    repeats: int = REPEATS,
) -> Float[Tensor, " R"]:
    """Return, for each repeat, the share of sampled neighbours that k-NN puts into the class of their image.

    A sampled neighbour is the raw projection + σε, normalised; both classes are those k-NN predicts in the bank.
    """
    before = nearest_classes(bank, classes, projections, neighbours, leave_one_out)
    rates = []
    for _ in range(repeats):
        noise = torch.randn(projections.shape, generator=generator).to(projections.device)
        after = nearest_classes(bank, classes, projections + sigma * noise, neighbours, leave_one_out)
        rates.append(int((after == before).sum()) / len(before))
    return torch.tensor(rates, dtype=torch.float64)
