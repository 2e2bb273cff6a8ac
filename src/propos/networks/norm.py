"""Batch norm that sees the global batch in a fixed number of groups, however many processes share it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from propos.distributed import share, sum_over_processes, world_size


@dataclass(frozen=True)
class Groups:
    """How a batch falls into groups, and this process's rows of it."""

    here: tuple[int, ...]  # this process's rows in each group
    whole: tuple[int, ...]  # all processes' rows in each group
    shared: bool  # whether a group lies on several processes

    @classmethod
    def of(cls, batch: int, groups: int) -> Groups:
        """Cut a batch into groups of consecutive rows."""
        bounds, part = [batch * number // groups for number in range(groups + 1)], share(batch)
        spans = list(pairwise(bounds))
        here = tuple(max(0, min(stop, part.stop) - max(start, part.start)) for start, stop in spans)
        # Where each process has as many groups as the others, its share begins and ends with one of them.
        return cls(here, tuple(stop - start for start, stop in spans), shared=groups % world_size() != 0)

    def doubled(self) -> Groups:
        """Return the groups of a batch that holds each image twice, group by group."""
        return Groups(tuple(2 * rows for rows in self.here), tuple(2 * rows for rows in self.whole), self.shared)


ALONE = Groups((), (), shared=False)


class BatchNorm(_BatchNorm):
    """Batch norm over rows or images; one group in one process is torch's own, to the bit.

    The running buffers move by the mean of the groups' statistics, so that their mean over processes is what one
    process would hold.
    """

    def __init__(self, features: int) -> None:
        super().__init__(features)
        self.groups = ALONE

    def forward(self, x: Float[Tensor, "b C ..."]) -> Float[Tensor, "b C ..."]:
        """Normalise with the statistics of each row's group; in evaluation mode, with the running ones."""
        groups = self.groups
        if not self.training or (len(groups.here) < 2 and not groups.shared):
            return super().forward(x)
        assert sum(groups.here) == len(x), f"{len(x)} rows for groups of {groups.here}"
        self._buffer("num_batches_tracked").add_(1)
        return self._together(x) if groups.shared else self._apart(x)

    def _check_input_dim(self, input: Tensor) -> None:
        assert input.ndim in (2, 4)

    def _buffer(self, name: str) -> Tensor:
        return self.get_buffer(name)

    def _apart(self, x: Tensor) -> Tensor:
        """Normalise groups that all lie on this process."""
        running = [self._buffer("running_mean"), self._buffer("running_var")]
        mine = [rows for rows in self.groups.here if rows]
        moved = [torch.stack([buffer] * len(mine)) for buffer in running]
        parts = [
            F.batch_norm(part, mean, variance, self.weight, self.bias, True, self.momentum or 0.0, self.eps)
            for part, mean, variance in zip(x.split(mine), *moved, strict=True)
        ]
        for buffer, each in zip(running, moved, strict=True):
            buffer.copy_(each.mean(dim=0))
        return torch.cat(parts)

    def _together(self, x: Tensor) -> Tensor:
        """Normalise groups that lie on several processes."""
        normalised, means, variances = _Shared.apply(x, self.weight, self.bias, self.eps, self.groups)  # type: ignore[no-untyped-call]
        counts = _counts(self.groups, x)[:, 0].to(variances.dtype)
        unbiased = variances * (counts / (counts - 1))
        for name, found in (("running_mean", means), ("running_var", unbiased)):
            buffer = self._buffer(name)
            buffer.lerp_(found.mean(dim=0).to(buffer.dtype), self.momentum or 0.0)
        result: Tensor = normalised
        return result


class _Shared(torch.autograd.Function):
    """Batch norm with statistics of all processes' rows: two small sums over processes, the rest torch's kernels."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float, groups: Groups
    ) -> tuple[Tensor, Tensor, Tensor]:
        parts = x.split(groups.here)
        sums = torch.stack([_sums(part) for part in parts])
        means, squares = sum_over_processes(sums).div_(_counts(groups, x)).unbind(dim=1)
        variances = (squares - means.square()).clamp_(min=0).to(weight.dtype)
        means = means.to(weight.dtype)
        normalised = [
            F.batch_norm(part, mean, variance, weight, bias, training=False, eps=eps) if len(part) else part
            for part, mean, variance in zip(parts, means, variances, strict=True)
        ]
        ctx.save_for_backward(x, weight, means, variances)
        ctx.eps, ctx.groups = eps, groups
        ctx.mark_non_differentiable(means, variances)
        return normalised[0] if len(normalised) == 1 else torch.cat(normalised), means, variances

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, means, variances = ctx.saved_tensors
        groups: Groups = ctx.groups
        scales = torch.rsqrt(variances + ctx.eps)
        pairs = zip(gradient.split(groups.here), x.split(groups.here), means, variances, strict=True)
        parts = [_with_fixed_statistics(*each, weight, ctx.eps) for each in pairs]
        of_weight = torch.stack([part[1] for part in parts])  # Σ gradient · normalised x, by group
        of_bias = torch.stack([part[2] for part in parts])  # Σ gradient
        sums = sum_over_processes(torch.stack([of_weight, of_bias], dim=1).double()).div_(_counts(groups, x))
        slope, level = sums.to(weight.dtype).unbind(dim=1)
        # w/σ · (g − level − slope · (x − mean)/σ): the kernel above gave the first term.
        factor = -weight * scales.square() * slope
        shift = -weight * scales * level - factor * means
        for part, rows, by, add in zip(parts, x.split(groups.here), factor, shift, strict=True):
            part[0].addcmul_(rows, _wide(by, rows)).add_(_wide(add, rows))
        whole = parts[0][0] if len(parts) == 1 else torch.cat([part[0] for part in parts])
        return whole, of_weight.sum(dim=0), of_bias.sum(dim=0), None, None


def _with_fixed_statistics(
    gradient: Tensor, x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, weight and bias as if mean and variance did not depend on x."""
    if not len(x):
        return torch.empty_like(x), torch.zeros_like(weight), torch.zeros_like(weight)
    kernel = torch.ops.aten.native_batch_norm_backward
    of_x, of_weight, of_bias = kernel(gradient, x, weight, mean, variance, None, None, False, eps, [True] * 3)
    return of_x, of_weight, of_bias


def _sums(part: Float[Tensor, "b C ..."]) -> Float[Tensor, "2 C"]:
    """Return the sums of values and squares per channel in double precision, where their difference is exact enough."""
    channels = part.shape[1]
    if not len(part):
        return torch.zeros((2, channels), dtype=torch.float64, device=part.device)
    count = part.numel() // channels
    mean, variance = torch.batch_norm_update_stats(part, None, None, 0.0)
    mean, variance = mean.double(), variance.double()
    return torch.stack([mean, variance + mean.square()]).mul_(count)


def _counts(groups: Groups, x: Tensor) -> Float[Tensor, "G 1 1"]:
    """Return how many values of each channel a group has."""
    rows = torch.tensor(groups.whole, dtype=torch.float64, device=x.device)
    return rows.mul_(x[0, 0].numel())[:, None, None]


def _wide(channels: Float[Tensor, " C"], x: Tensor) -> Tensor:
    return channels.to(x.dtype).view(-1, *[1] * (x.ndim - 2))


def set_groups(network: nn.Module, groups: Groups) -> None:
    """Tell every batch norm of a network how the next batch falls into groups."""
    for module in network.modules():
        if isinstance(module, BatchNorm):
            module.groups = groups
