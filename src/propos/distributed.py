"""The only file that names torch.distributed. Everything here works, and costs nothing, in a single process."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor


def world_size() -> int:
    """Return how many processes share the batch."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return this process's number among those that share the batch."""
    return dist.get_rank() if world_size() > 1 else 0


def sum_over_processes(local: Tensor) -> Tensor:
    """Return the sum of every process's tensor, the same bits on each; no gradient passes."""
    if world_size() == 1:
        return local
    total = local.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total


def each_process(local: Tensor) -> Tensor:
    """Return every process's tensor, all of one shape, stacked in rank order; no gradient passes."""
    if world_size() == 1:
        return local[None]
    parts = [torch.empty_like(local, memory_format=torch.contiguous_format) for _ in range(world_size())]
    dist.all_gather(parts, local.detach().contiguous())
    return torch.stack(parts)


def from_first_process(local: Tensor) -> Tensor:
    """Return the first process's tensor."""
    if world_size() == 1:
        return local
    copy = local.detach().clone(memory_format=torch.contiguous_format)
    dist.broadcast(copy, src=0)
    return copy


def gather(local: Float[Tensor, "b ..."]) -> Float[Tensor, "B ..."]:
    """Concatenate every process's tensor in rank order; the backward pass sums over processes.

    Each process computes the loss of the global batch, so the sum of their gradients is W times the gradient of
    the one loss, and the mean that DDP takes over processes is exactly the one-process gradient.
    """
    if world_size() == 1:
        return local
    gathered: Tensor = _Gather.apply(local)  # type: ignore[no-untyped-call]  # torch leaves apply untyped
    return gathered


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor) -> Tensor:
        parts = [torch.empty_like(local) for _ in range(world_size())]
        dist.all_gather(parts, local.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous()
        dist.all_reduce(total)
        return total.chunk(world_size())[dist.get_rank()]
