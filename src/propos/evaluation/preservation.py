"""Whether the neighbours that positive sampling draws keep the class of the image they are drawn for."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.evaluation.neighbours import nearest_classes

REPEATS = 10


class Bank(NamedTuple):
    """Embeddings with known classes, among which neighbours are searched."""

    points: Float[Tensor, "N D"]
    classes: Int[Tensor, " N"]


def preservation_rates(
    bank: Bank,
    projections: Float[Tensor, "Q D"],
    sigma: float,
    neighbours: int,
    generator: torch.Generator,
    leave_one_out: bool = False,
) -> Float[Tensor, " R"]:
    """Return, for each repeat, the share of sampled neighbours that k-NN puts into the class of their image.

    A sampled neighbour is the raw projection + σε, normalised; both classes are those k-NN predicts in the bank.
    """
    before = nearest_classes(bank.points, bank.classes, projections, neighbours, leave_one_out)
    rates = []
    for _ in range(REPEATS):
        noise = torch.randn(projections.shape, generator=generator).to(projections.device)
        after = nearest_classes(bank.points, bank.classes, projections + sigma * noise, neighbours, leave_one_out)
        rates.append(int((after == before).sum()) / len(before))
    return torch.tensor(rates, dtype=torch.float64)
