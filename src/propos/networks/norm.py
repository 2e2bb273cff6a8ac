"""Batch norm over a fixed number of groups of the global batch, whatever the number of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from propos.distributed import share, sum_over_processes, world_size


@dataclass(frozen=True)
class BatchGroups:
    """The groups of a batch, and this process's rows of each."""

    here: tuple[int, ...]  # this process's rows in each group
    whole: tuple[int, ...]  # all processes' rows in each group
    shared: bool  # whether a group lies on several processes
    passes: int = 1  # the number of concatenated batches that the groups belong to

    @classmethod
    def of(cls, batch: int, groups: int) -> BatchGroups:
        """Divide a batch into groups of consecutive rows."""
        bounds, part = [batch * number // groups for number in range(groups + 1)], share(batch)
        spans = list(pairwise(bounds))
        here = tuple(max(0, min(stop, part.stop) - max(start, part.start)) for start, stop in spans)
        # If every process has equally many groups, its share consists of whole groups.
        return cls(here, tuple(stop - start for start, stop in spans), shared=groups % world_size() != 0)

    def joined(self, views: int) -> BatchGroups:
        """Return the groups of a batch in which each group holds several views of its images."""
        here, whole = (tuple(views * rows for rows in each) for each in (self.here, self.whole))
        return replace(self, here=here, whole=whole)

    def concatenated(self, views: int) -> BatchGroups:
        """Return the groups of several concatenated batches, each with statistics of its own."""
        return replace(self, here=views * self.here, whole=views * self.whole, passes=views)


ALONE = BatchGroups((), (), shared=False)


class BatchNorm(_BatchNorm):
    """Batch norm over rows or images; one group in one process is torch's own, to the bit.

    The running buffers are updated by the mean of the groups' statistics, so that their mean over processes equals
    the buffers of one process.
    """

    def __init__(self, features: int, eps: float = 1e-5) -> None:
        super().__init__(features, eps)
        self.groups = ALONE
        self.recomputing = False  # whether this pass repeats one that the buffers already contain

    def forward(self, x: Float[Tensor, "b C ..."]) -> Float[Tensor, "b C ..."]:
        """Normalise with the statistics of each row's group; in eval mode, with the running ones."""
        groups = self.groups
        if not self.training or (len(groups.here) < 2 and not groups.shared):
            if self.training and self.recomputing:
                mean, variance = self._buffer("running_mean").clone(), self._buffer("running_var").clone()
                return F.batch_norm(x, mean, variance, self.weight, self.bias, True, self.momentum or 0.0, self.eps)
            return super().forward(x)
        assert sum(groups.here) == len(x), f"{len(x)} rows for groups of {groups.here}"
        if not self.recomputing:
            self._buffer("num_batches_tracked").add_(1)
        return self._over_processes(x) if groups.shared else self._on_this_process(x)

    def _check_input_dim(self, input: Tensor) -> None:
        assert input.ndim in (2, 4)

    def _buffer(self, name: str) -> Tensor:
        return self.get_buffer(name)

    def _on_this_process(self, x: Tensor) -> Tensor:
        """Normalise groups that are all on this process."""
        running = [self._buffer("running_mean"), self._buffer("running_var")]
        sizes = [rows for rows in self.groups.here if rows]
        moved = [torch.stack([buffer] * len(sizes)) for buffer in running]
        parts = [
            F.batch_norm(part, mean, variance, self.weight, self.bias, True, self.momentum or 0.0, self.eps)
            for part, mean, variance in zip(x.split(sizes), *moved, strict=True)
        ]
        for buffer, each in zip(running, moved, strict=True):
            if not self.recomputing:
                buffer.copy_(each.mean(dim=0))
        return torch.cat(parts)

    def _over_processes(self, x: Tensor) -> Tensor:
        """Normalise groups that are shared by several processes."""
        normalised, means, variances = _Shared.apply(x, self.weight, self.bias, self.eps, self.groups)  # type: ignore[no-untyped-call]
        result: Tensor = normalised
        if self.recomputing:
            return result
        counts = _counts(self.groups, x)[:, 0].to(variances.dtype)
        unbiased = variances * (counts / (counts - 1))
        for name, statistics in (("running_mean", means), ("running_var", unbiased)):
            buffer = self._buffer(name)
            for of_pass in statistics.chunk(self.groups.passes):
                buffer.lerp_(of_pass.mean(dim=0).to(buffer.dtype), self.momentum or 0.0)
        return result


class _Shared(torch.autograd.Function):
    """Batch norm with statistics of all processes' rows: one small message each way."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float, groups: BatchGroups
    ) -> tuple[Tensor, Tensor, Tensor]:
        sums = torch.stack([_sums(part) for part in x.split(groups.here)])
        means, squares = sum_over_processes(sums).div_(_counts(groups, x)).unbind(dim=1)
        variances = (squares - means.square()).clamp_(min=0).to(weight.dtype)
        means = means.to(weight.dtype)
        scales = weight * torch.rsqrt(variances + eps)
        ctx.save_for_backward(x, weight, means, variances)
        ctx.eps, ctx.groups = eps, groups
        ctx.mark_non_differentiable(means, variances)
        by_row = _rows(groups, x)
        return torch.addcmul(by_row(bias - means * scales), x, by_row(scales)).to(x.dtype), means, variances

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, means, variances = ctx.saved_tensors
        groups: BatchGroups = ctx.groups
        pairs = zip(gradient.split(groups.here), x.split(groups.here), means, variances, strict=True)
        of_weight, of_bias = torch.stack([_of_weight_and_bias(*each, weight, ctx.eps) for each in pairs], dim=1)
        sums = torch.stack([of_weight, of_bias], dim=1).double()
        slope, level = sum_over_processes(sums).div_(_counts(groups, x)).to(weight.dtype).unbind(dim=1)
        # w/σ · (g − level − slope · (x − mean)/σ)
        inverse = torch.rsqrt(variances + ctx.eps)
        scales = weight * inverse
        factor = -scales * inverse * slope
        by_row = _rows(groups, x)
        of_x = torch.addcmul(by_row(-scales * level - factor * means), x, by_row(factor))
        of_x.addcmul_(gradient, by_row(scales))
        return of_x.to(x.dtype), of_weight.sum(dim=0), of_bias.sum(dim=0), None, None


def _of_weight_and_bias(
    gradient: Tensor, x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, eps: float
) -> Float[Tensor, "2 C"]:
    """Return the gradients of weight and bias: the sums of gradient · normalised x, and of the gradient."""
    if not len(x):
        return weight.new_zeros((2, len(weight)))
    kernel, wanted = torch.ops.aten.native_batch_norm_backward, [False, True, True]
    # As in training with these statistics: CUDA's kernel takes no others.
    _, of_weight, of_bias = kernel(
        gradient, x, weight, None, None, mean, torch.rsqrt(variance + eps), True, eps, wanted
    )
    return torch.stack([of_weight, of_bias])


def _sums(part: Float[Tensor, "b C ..."]) -> Float[Tensor, "2 C"]:
    """Return the sums of values and of squares per channel in double precision, so that the variance is accurate."""
    channels = part.shape[1]
    if not len(part):
        return torch.zeros((2, channels), dtype=torch.float64, device=part.device)
    count = part.numel() // channels
    untouched = torch.zeros(
        channels, dtype=torch.float32, device=part.device
    )  # in float32, so that statistics of half precision are float32
    mean, variance = torch.batch_norm_update_stats(part, untouched, untouched.clone(), 0.0)
    mean, variance = mean.double(), variance.double()
    return torch.stack([mean, variance + mean.square()]).mul_(count)


def _counts(groups: BatchGroups, x: Tensor) -> Float[Tensor, "G 1 1"]:
    """Return the number of values of a channel in each group."""
    return _on_device(groups.whole, x.device).double().mul_(x[0, 0].numel())[:, None, None]


@cache
def _on_device(rows: tuple[int, ...], device: torch.device) -> Int[Tensor, " G"]:
    """Return the groups' numbers of rows on a device, cached: every batch norm needs them."""
    return torch.tensor(rows, device=device)


def _rows(groups: BatchGroups, x: Tensor) -> Callable[[Float[Tensor, "G C"]], Float[Tensor, "b C ..."]]:
    """Return a function that expands values of the groups to the rows of x."""
    here = _on_device(groups.here, x.device)
    group = torch.arange(len(here), device=x.device).repeat_interleave(here, output_size=len(x))
    return lambda values: values[group].view(len(x), -1, *[1] * (x.ndim - 2))


def recomputing(network: nn.Module) -> AbstractContextManager[None]:
    """Return a context in which batch norms repeat the present pass: in its groups, without updating their buffers."""
    return _recomputing([(module, module.groups) for module in network.modules() if isinstance(module, BatchNorm)])


@contextmanager
def _recomputing(norms: list[tuple[BatchNorm, BatchGroups]]) -> Iterator[None]:
    present = [norm.groups for norm, _ in norms]
    for norm, groups in norms:
        norm.recomputing, norm.groups = True, groups
    try:
        yield
    finally:
        for (norm, _), groups in zip(norms, present, strict=True):
            norm.recomputing, norm.groups = False, groups


def set_groups(network: nn.Module, groups: BatchGroups) -> None:
    """Set the groups of the next batch in every batch norm of a network."""
    for module in network.modules():
        if isinstance(module, BatchNorm):
            module.groups = groups
