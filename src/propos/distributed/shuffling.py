"""Shuffling of a batch over processes: each one receives the rows that it needs, and no others."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from jaxtyping import Float, Int
from torch import Tensor

from propos.distributed.process_group import rank, world_size
from propos.distributed.sharing import shares
from propos.distributed.transfer import send_together


class Shuffle:
    """An order of a batch that processes share. No gradient passes."""

    def __init__(self, order: Int[Tensor, " B"], device: torch.device) -> None:
        spans = shares(len(order))
        own, wanted = spans[rank()], [order[span] for span in spans]
        leaving = [rows[(rows >= own.start) & (rows < own.stop)] - own.start for rows in wanted]
        owners = torch.bucketize(wanted[rank()], torch.tensor([span.stop for span in spans]), right=True)
        there, here = torch.cat(leaving), owners.argsort(stable=True)
        self._sent, self._received = [len(rows) for rows in leaving], owners.bincount(minlength=len(spans)).tolist()
        # The rows that leave in order of their receivers, the rows that arrive in order of their senders; and back.
        indices = send_together([there, there.argsort(), here, here.argsort()], device)
        self._leaving, self._home, self._arriving, self._places = indices

    def apply(self, rows: Float[Tensor, "b ..."]) -> Float[Tensor, "b ..."]:
        """Return this process's share of the shuffled batch, given its share of the batch."""
        if world_size() == 1:
            return rows[self._leaving]
        return _exchange(rows[self._leaving], self._sent, self._received)[self._places]

    def undo(self, rows: Float[Tensor, "b ..."]) -> Float[Tensor, "b ..."]:
        """Return this process's share of the batch, given its share of the shuffled batch."""
        if world_size() == 1:
            return rows[self._home]
        return _exchange(rows[self._arriving], self._received, self._sent)[self._home]


def _exchange(rows: Tensor, sent: Sequence[int], received: Sequence[int]) -> Tensor:
    """Send consecutive rows to each process, in rank order, and return the rows that arrive, in rank order."""
    assert not rows.requires_grad, "a shuffled pass has no gradient"
    arrived = rows.new_empty((sum(received), *rows.shape[1:]))
    # As bytes, whatever their type.
    into, out = (each.flatten(1).view(torch.uint8) for each in (arrived, rows.contiguous()))
    dist.all_to_all_single(into, out, list(received), list(sent))
    return arrived
