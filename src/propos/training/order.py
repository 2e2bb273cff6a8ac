"""Which images each step of an epoch sees."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from propos.methods.seeds import generator
from propos.training.schedule import Schedule


def epoch_order(
    seed: int,
    epoch: int,
    schedule: Schedule,
    balance: Int[Tensor, " N"] | None = None,
    drawn: Int[Tensor, " M"] | None = None,
) -> Int[Tensor, "S A*B"]:
    """Return the images of each step of an epoch: a function of seed and epoch alone.

    Images that are no part of the clustering come first, in steps of their own; their positions follow the others'.
    With labels to balance, every cluster is drawn from as often, so that images of small clusters come several times.
    `drawn` are the positions of those that take part, where not all do.
    """
    draw = generator(seed, "order", epoch)
    if balance is None:
        order = torch.randperm(schedule.drawn, generator=draw)
    else:
        clusters = balance.cpu() if drawn is None else balance.cpu()[drawn]
        sizes = torch.bincount(clusters.clamp(min=0))
        order = torch.multinomial(1 / sizes[clusters].double(), schedule.drawn, replacement=True, generator=draw)
    order = order if drawn is None else drawn[order]
    steps = _steps(order, schedule)
    if not schedule.unlabelled:
        return steps
    others = torch.randperm(schedule.unlabelled, generator=generator(seed, "unlabelled", epoch))
    return torch.cat([schedule.images + _steps(others, schedule), steps])


def _steps(order: Int[Tensor, " N"], schedule: Schedule) -> Int[Tensor, "S A*B"]:
    per_step = schedule.batch * schedule.accumulate
    return order[: len(order) // per_step * per_step].view(-1, per_step)
