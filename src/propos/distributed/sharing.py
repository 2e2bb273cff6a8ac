"""Shares of rows between processes, and communication between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float, Int
from torch import Tensor

from propos.distributed.process_group import rank, world_size

PIECE_BYTES = 64 * 2**20  # of a message when rows are collected on the first process
# Torch renames it from 2.13 on.
_gather_into: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
FEW_BYTES = 64 * 2**10  # up to this size tensors are gathered and summed instead of reduced


def shares(total: int) -> list[slice]:
    """Return each process's slice of `total` rows; their lengths differ by at most one."""
    bounds = [total * number // world_size() for number in range(world_size() + 1)]
    return [slice(start, stop) for start, stop in pairwise(bounds)]


def share(total: int) -> slice:
    """Return this process's slice of `total` rows."""
    return shares(total)[rank()]


def any_process(*flags: bool) -> tuple[bool, ...]:
    """Return for each flag whether it is true on any process."""
    if world_size() == 1:
        return flags
    return tuple(all_gather(torch.tensor(flags)).any(dim=0).tolist())


def sum_over_processes(local: Tensor) -> Tensor:
    """Return the sum of every process's tensor, the same bits on each; no gradient passes.

    Small tensors are gathered and summed here: one exchange instead of the two of an all-reduce.
    """
    if world_size() == 1:
        return local
    if local.nbytes * world_size() <= FEW_BYTES:
        return all_gather(local).sum(dim=0, dtype=local.dtype)
    total = local.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total


def all_gather(local: Tensor) -> Tensor:
    """Return every process's tensor, all of one shape, stacked in rank order; no gradient passes."""
    if world_size() == 1:
        return local[None]
    local = local.detach().contiguous()
    whole = local.new_empty((world_size(), *local.shape))
    if local.device.type == "cpu":
        dist.all_gather(list(whole.unbind()), local)
    else:  # NCCL writes them next to each other, without a copy for each
        _gather_into(whole, local)
    return whole


def gather_rows(local: Float[Tensor, "n D"], positions: Int[Tensor, " M"], total: int) -> Float[Tensor, "M D"]:
    """Return rows of a sharded table on every process; no gradient passes."""
    if world_size() == 1:
        return local[positions]
    own = share(total)
    here = (positions >= own.start) & (positions < own.stop)
    rows = local.new_zeros((len(positions), *local.shape[1:]))
    rows[here] = local[positions[here] - own.start]
    return sum_over_processes(rows)


def broadcast(local: Tensor, source: int = 0) -> Tensor:
    """Return one process's tensor, the first one's by default."""
    if world_size() == 1:
        return local
    copy = local.detach().clone(memory_format=torch.contiguous_format)
    dist.broadcast(copy, src=source)
    return copy


def broadcast_bytes(content: bytes | None) -> bytes | None:
    """Return the first process's bytes; None if it has none."""
    if world_size() == 1:
        return content
    length = int(broadcast(torch.tensor(-1 if content is None else len(content))))
    if length < 0:
        return None
    if rank() > 0 or content is None:
        content = bytes(length)
    return broadcast(torch.frombuffer(bytearray(content), dtype=torch.uint8)).numpy().tobytes()


def bytes_on_first(content: bytes | None, owner: int) -> bytes:
    """Return bytes of one process on the first process, nothing on the others; only these two exchange a message."""
    if owner == 0 or rank() not in (0, owner):
        return (content or b"") if rank() == owner else b""
    if rank() == owner:
        assert content is not None
        dist.send(torch.tensor(len(content)), dst=0)
        dist.send(torch.frombuffer(bytearray(content), dtype=torch.uint8), dst=0)
        return b""
    length = torch.tensor(0)
    dist.recv(length, src=owner)
    received = torch.empty(int(length), dtype=torch.uint8)
    dist.recv(received, src=owner)
    return received.numpy().tobytes()


def all_gather_texts(text: str) -> list[str]:
    """Return every process's text, in rank order, on all of them."""
    if world_size() == 1:
        return [text]
    content = torch.tensor(list(text.encode()), dtype=torch.uint8)
    lengths = all_gather(torch.tensor(len(content))).tolist()
    padded = torch.zeros(max(lengths), dtype=torch.uint8)
    padded[: len(content)] = content
    return [bytes(row[:length].tolist()).decode() for row, length in zip(all_gather(padded), lengths, strict=True)]


def gather_on_first(local: Float[Tensor, "n ..."], total: int) -> Float[Tensor, "N ..."] | None:
    """Return all processes' rows of a table with `total` rows on the first process, None on the others.

    They are sent in pieces, so that only the first process holds more than its own rows and a piece.
    """
    if world_size() == 1:
        return local
    rows = max(1, PIECE_BYTES // max(1, local[:1].nbytes))
    if rank() > 0:
        for piece in local.split(rows):
            dist.send(piece.contiguous(), dst=0)
        return None
    whole = local.new_empty((total, *local.shape[1:]))
    whole[share(total)] = local
    for other, span in enumerate(shares(total)[1:], start=1):
        for piece in whole[span].split(rows):
            dist.recv(piece, src=other)
    return whole


def gather(local: Float[Tensor, "b ..."], total: int | None = None) -> Float[Tensor, "B ..."]:
    """Concatenate every process's tensor in rank order; the backward pass sums over processes.

    Each process must compute the same loss from what is gathered, that of the global batch. Then their gradients are
    equal, their sum is W times this process's own and needs no message, and the mean over processes of what
    reaches the parameters is exactly the one-process gradient. With `total`, each process has its share of
    `total` rows; without, all have equally many.
    """
    if world_size() == 1:
        return local
    gathered: Tensor = _Gather.apply(local, total or len(local) * world_size())  # type: ignore[no-untyped-call]
    return gathered


def gather_together(tensors: Sequence[Float[Tensor, "b _"]], total: int) -> list[Float[Tensor, "B _"]]:
    """Gather tables with equally many rows in one message; tables without a gradient stay without."""
    if world_size() == 1:
        return list(tensors)
    whole = gather(torch.cat(list(tensors), dim=1), total)
    pieces = whole.split([tensor.shape[1] for tensor in tensors], dim=1)
    return [piece if one.requires_grad else piece.detach() for one, piece in zip(tensors, pieces, strict=True)]


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, total: int) -> Tensor:
        ctx.share = share(total)
        rows = [span.stop - span.start for span in shares(total)]
        if len(set(rows)) == 1:
            return all_gather(local).flatten(0, 1)
        padded = local.new_zeros((max(rows), *local.shape[1:]))
        padded[: len(local)] = local
        return torch.cat([part[:filled] for part, filled in zip(all_gather(padded), rows, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return world_size() * gradients[0][ctx.share], None
