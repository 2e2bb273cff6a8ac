"""The order of images in an epoch."""

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
    """Return the images of each step of an epoch: a function of seed, epoch and these arguments.

    Images that are not clustered come first, in steps of their own; their positions follow the others'.
    With labels to balance, clusters are sampled equally often, so images of small clusters occur several times.
    `drawn` are the positions of the included images; None: all.
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
