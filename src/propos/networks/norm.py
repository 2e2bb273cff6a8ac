"""Batch norm over a fixed number of groups of the global batch, whatever the number of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from propos.distributed import all_gather, rank, shares, world_size
from propos.distributed.transfer import send

# Where this thread's pass collects the updates of buffers; None: it makes them.
_UPDATES: ContextVar[list[Callable[[], None]] | None] = ContextVar("updates", default=None)


@contextmanager
def deferred_updates() -> Iterator[list[Callable[[], None]]]:
    """Return a context in which batch norms of this thread collect the updates of their buffers in a list."""
    updates: list[Callable[[], None]] = []
    token = _UPDATES.set(updates)
    try:
        yield updates
    finally:
        _UPDATES.reset(token)


@dataclass(frozen=True)
class BatchGroups:
    """The groups of a batch, and each process's rows of them."""

    of_processes: tuple[tuple[int, ...], ...]  # each process's rows in each group
    process: int = 0  # this one
    shared: bool = False  # whether a group lies on several processes
    passes: int = 1  # the number of concatenated batches that the groups belong to

    @classmethod
    def of(cls, batch: int, groups: int) -> BatchGroups:
        """Divide a batch into groups of consecutive rows."""
        spans = list(pairwise(batch * number // groups for number in range(groups + 1)))
        of_processes = tuple(
            tuple(max(0, min(stop, part.stop) - max(start, part.start)) for start, stop in spans)
            for part in shares(batch)
        )
        # If every process has equally many groups, its share consists of whole groups.
        return cls(of_processes, rank(), shared=groups % world_size() != 0)

    @property
    def here(self) -> tuple[int, ...]:
        """This process's rows in each group."""
        return self.of_processes[self.process]

    @property
    def rows(self) -> tuple[int, ...]:
        """This process's rows in each of the groups that it has rows of."""
        return tuple(rows for rows in self.here if rows)

    def joined(self, views: int) -> BatchGroups:
        """Return the groups of a batch in which each group holds several views of its images."""
        return replace(self, of_processes=tuple(tuple(views * rows for rows in each) for each in self.of_processes))

    def concatenated(self, views: int) -> BatchGroups:
        """Return the groups of several concatenated batches, each with statistics of its own."""
        return replace(self, of_processes=tuple(views * each for each in self.of_processes), passes=views)


ALONE = BatchGroups(((),))


class Statistics(NamedTuple):
    """The mean and 1/√(variance + ε) of each group that this process has rows of, and a channel's values in a row."""

    means: Sequence[Float[Tensor, " C"]]
    inverse: Sequence[Float[Tensor, " C"]]
    values: int


class BatchNorm(_BatchNorm):
    """Batch norm over rows or images; one group in one process is torch's own, to the bit.

    The running buffers are updated by the mean of the groups' statistics, so that their mean over processes equals
    the buffers of one process. `in_groups` updates those of all batch norms together, after the pass.
    """

    def __init__(self, features: int, eps: float = 1e-5) -> None:
        super().__init__(features, eps)
        self.groups = ALONE
        self.statistics: Statistics | None = None  # of this pass, which the buffers do not contain yet

    def forward(self, x: Float[Tensor, "b C ..."]) -> Float[Tensor, "b C ..."]:
        """Normalise with the statistics of each row's group; in eval mode, with the running ones."""
        # torch's compiler cannot look into a context: compiled passes are made one by one, and update their buffers.
        groups, updates = self.groups, None if torch.compiler.is_compiling() else _UPDATES.get()
        if not self.training or (len(groups.here) < 2 and not groups.shared):
            if not self.training or updates is None:
                return super().forward(x)
            mean, variance = (torch.zeros_like(self.get_buffer(name)) for name in ("running_mean", "running_var"))
            updates.append(lambda: self._update(mean, variance))
            return F.batch_norm(x, mean, variance, self.weight, self.bias, True, 1.0, self.eps)
        assert sum(groups.here) == len(x), f"{len(x)} rows for groups of {groups.here}"
        made = _Grouped.apply(x, self.weight, self.bias, self.eps, groups)  # type: ignore[no-untyped-call]
        normalised: Tensor = made[0]
        if updates is None:
            self.statistics = Statistics(made[1::2], made[2::2], x[0, 0].numel())
        return normalised

    def _update(self, mean: Tensor, variance: Tensor) -> None:
        """Add a batch's statistics to the running ones."""
        self.get_buffer("num_batches_tracked").add_(1)
        for name, statistics in (("running_mean", mean), ("running_var", variance)):
            self.get_buffer(name).lerp_(statistics, self.momentum or 0.0)

    def _check_input_dim(self, input: Tensor) -> None:
        assert input.ndim in (2, 4)


class _Grouped(torch.autograd.Function):
    """Batch norm of groups by torch's kernels, each writing its group's rows to their place in the result."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float, groups: BatchGroups
    ) -> tuple[Tensor, ...]:
        y = torch.empty_like(x)
        parts, outs = x.split(groups.rows), y.split(groups.rows)
        if groups.shared:
            statistics = _statistics_over_processes(parts, eps, groups)
            for part, out, of_group in zip(parts, outs, statistics, strict=True):
                _normalise(part, weight, bias, *of_group, eps, out)
        else:
            statistics = list(weight.new_empty((len(parts), 2, len(weight))))
            for part, out, (mean, inverse) in zip(parts, outs, statistics, strict=True):
                torch.ops.aten.native_batch_norm.out(
                    part, weight, bias, None, None, True, 0.0, eps, out=out, save_mean=mean, save_invstd=inverse
                )
        flat = [each for of_group in statistics for each in of_group]
        ctx.save_for_backward(x, weight, *flat)
        ctx.eps, ctx.groups = eps, groups
        ctx.mark_non_differentiable(*flat)
        ctx.set_materialize_grads(False)
        return y, *flat

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: None) -> tuple[Tensor | None, ...]:
        x, weight, *flat = ctx.saved_tensors
        groups: BatchGroups = ctx.groups
        if groups.shared and gradient.stride() != x.stride():  # CUDA's kernel takes them for equal
            gradient = torch.empty_like(x).copy_(gradient)
        pieces = list(zip(gradient.split(groups.rows), x.split(groups.rows), flat[::2], flat[1::2], strict=True))
        if groups.shared:
            made = [_sums(*piece, weight, ctx.eps) for piece in pieces]
            exchanged = _exchanged([each for *_, slope, level in made for each in (slope, level)], groups)
            sources = _sources(groups, x[0, 0].numel(), x.device)
            of_parts = [
                _of_input(*piece, weight, exchanged[source.places].sum(dim=0), source)
                for piece, source in zip(pieces, sources, strict=True)
            ]
            of_parameters = [each for of_part in made for each in of_part[:2]]
        else:
            kernel, wanted = torch.ops.aten.native_batch_norm_backward, [True, True, True]
            all_made = [kernel(g, part, weight, None, None, *rest, True, ctx.eps, wanted) for g, part, *rest in pieces]
            of_parts = [of_part for of_part, _, _ in all_made]
            of_parameters = [each for _, *both in all_made for each in both]
        if len(pieces) == 1:  # a copy would be needless
            return of_parts[0], *of_parameters, None, None
        of_weight, of_bias = torch.stack(of_parameters).view(len(pieces), 2, -1).sum(dim=0)
        return torch.cat(of_parts), of_weight, of_bias, None, None


# On a GPU each of the next five is one kernel, those of torch's SyncBatchNorm: half precision is not promoted.


def _mean_and_inverse(part: Float[Tensor, "b C ..."], eps: float) -> tuple[Float[Tensor, " C"], Float[Tensor, " C"]]:
    """Return mean and 1/√(variance + ε) of each channel, of half precision in float32."""
    if part.device.type != "cpu":
        return torch.batch_norm_stats(part, eps)
    untouched = torch.zeros(part.shape[1])  # the statistics have the precision of these
    mean, variance = torch.batch_norm_update_stats(part, untouched, untouched.clone(), 0.0)
    return mean, variance.add_(eps).rsqrt_()


def _combined(
    of_parts: Float[Tensor, "n 2 C"], counts: Float[Tensor, " n"], eps: float
) -> tuple[Float[Tensor, " C"], Float[Tensor, " C"]]:
    """Return mean and 1/√(variance + ε) of a group from those of its parts."""
    means, inverse = of_parts.unbind(dim=1)
    if means.device.type != "cpu":
        return torch.batch_norm_gather_stats_with_counts(means, means, inverse, None, None, 0.0, eps, counts)
    shares, means, variances = (counts / counts.sum())[:, None], means.double(), inverse.double() ** -2 - eps
    mean = (shares * means).sum(dim=0)
    variance = (shares * (variances + (means - mean).square())).sum(dim=0)
    return mean.float(), (variance + eps).rsqrt().float()


def _normalise(
    part: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, inverse: Tensor, eps: float, out: Tensor
) -> None:
    """Write (x − mean) · inverse · weight + bias of a group's rows."""
    if part.device.type != "cpu":
        torch.batch_norm_elemt(part, weight, bias, mean, inverse, eps, out=out)
        return
    scale = weight * inverse
    torch.addcmul(_by_channel(bias - mean * scale, part), part, _by_channel(scale, part), out=out)


def _sums(
    gradient: Tensor, part: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of weight and bias, and the sums of gradient · (x − mean) and of the gradient."""
    if part.device.type != "cpu":
        made = torch.batch_norm_backward_reduce(gradient, part, mean, inverse, weight, True, True, True)
        level, slope, of_weight, of_bias = made
        return of_weight, of_bias, slope, level
    kernel, wanted = torch.ops.aten.native_batch_norm_backward, [False, True, True]
    _, of_weight, of_bias = kernel(gradient, part, weight, None, None, mean, inverse, True, eps, wanted)
    return of_weight, of_bias, of_weight / inverse, of_bias


def _of_input(
    gradient: Tensor,
    part: Tensor,
    mean: Tensor,
    inverse: Tensor,
    weight: Tensor,
    sums: Float[Tensor, "2 C"],
    source: _Source,
) -> Tensor:
    """Return the gradient of a group's rows: weight · inverse · (g − level/n − (x − mean) · inverse² · slope/n)."""
    slope, level = sums
    if part.device.type != "cpu":
        return torch.batch_norm_backward_elemt(gradient, part, mean, inverse, weight, level, slope, source.whole)
    scale, count = weight * inverse, source.whole
    factor = -scale * inverse.square() * (slope / count)
    of_part = torch.addcmul(
        _by_channel(-scale * (level / count) - factor * mean, part), part, _by_channel(factor, part)
    )
    return of_part.addcmul_(gradient, _by_channel(scale, part)).to(part.dtype)


def _by_channel(values: Float[Tensor, " C"], part: Float[Tensor, "b C ..."]) -> Float[Tensor, "C ..."]:
    return values.view(-1, *[1] * (part.ndim - 2))


def _statistics_over_processes(
    parts: Sequence[Tensor], eps: float, groups: BatchGroups
) -> list[tuple[Float[Tensor, " C"], Float[Tensor, " C"]]]:
    """Return the mean and 1/√(variance + ε) of the groups that this process has rows of, by one small message."""
    exchanged = _exchanged([each for part in parts for each in _mean_and_inverse(part, eps)], groups)
    sources = _sources(groups, parts[0][0, 0].numel(), parts[0].device)
    return [_combined(exchanged[source.places], source.counts, eps) for source in sources]


def _exchanged(own: Sequence[Float[Tensor, " C"]], groups: BatchGroups) -> Float[Tensor, "W*k 2 C"]:
    """Return two values of each group of every process; processes with fewer groups than others fill up with 0."""
    local, slots = torch.stack(list(own)), _slots(groups)
    if len(local) < 2 * slots:
        local = F.pad(local, (0, 0, 0, 2 * slots - len(local)))
    return all_gather(local).view(-1, 2, local.shape[1])


def _slots(groups: BatchGroups) -> int:
    """Return the largest number of groups that a process has rows of."""
    return max(sum(rows > 0 for rows in each) for each in groups.of_processes)


class _Source(NamedTuple):
    """The places of a group's parts among the values of all processes, and the number of their values per channel."""

    places: slice | Int[Tensor, " n"]
    counts: Float[Tensor, " n"]
    whole: Int[Tensor, " 1"]  # their sum


@cache
def _sources(groups: BatchGroups, values: int, device: torch.device) -> list[_Source]:
    """Return the sources of the groups that this process has rows of."""
    places: dict[int, list[int]] = {}
    for process, each in enumerate(groups.of_processes):
        present = [group for group, rows in enumerate(each) if rows]
        for slot, group in enumerate(present):
            places.setdefault(group, []).append(process * _slots(groups) + slot)
    sources = []
    for group, rows in enumerate(groups.here):
        if rows:
            counts = [each[group] * values for each in groups.of_processes if each[group]]
            numbers = torch.tensor(counts).float(), torch.tensor([sum(counts)], dtype=torch.int32)
            sources.append(_Source(_regular(places[group], device), *(send(each, device) for each in numbers)))
    return sources


def _regular(places: list[int], device: torch.device) -> slice | Int[Tensor, " n"]:
    """Return places as a slice, which needs no copy, if they are equally far apart."""
    step = places[1] - places[0] if len(places) > 1 else 1
    evenly = range(places[0], places[-1] + 1, step)
    return slice(evenly.start, evenly.stop, step) if list(evenly) == places else send(torch.tensor(places), device)


@torch.no_grad()
def _update_buffers(norms: Sequence[BatchNorm], groups: BatchGroups) -> None:
    """Move the running statistics of all batch norms by those of their last pass: a few operations for all of them."""
    seen = [norm.statistics for norm in norms if norm.statistics is not None]
    factors, eps, unbiased = [], [], []
    for share, count in _shares(groups):
        for norm, statistics in zip(norms, seen, strict=True):
            values = count * statistics.values
            factors.append(share)
            eps.append(norm.eps)
            unbiased.append(share * values / (values - 1))
    means = torch._foreach_mul(_by_group([statistics.means for statistics in seen]), factors)
    variances = torch._foreach_pow(_by_group([statistics.inverse for statistics in seen]), -2)
    torch._foreach_sub_(variances, eps)
    torch._foreach_mul_(variances, unbiased)
    widths = [norm.num_features for norm in norms]
    by_pass = (torch.cat(each).view(groups.passes, -1, sum(widths)).sum(dim=1) for each in (means, variances))
    buffers = [norm.get_buffer(name) for name in ("running_mean", "running_var") for norm in norms]
    (momentum,) = {norm.momentum for norm in norms}
    for of_pass in zip(*by_pass, strict=True):
        torch._foreach_lerp_(buffers, [piece for row in of_pass for piece in row.split(widths)], momentum or 0.0)
    torch._foreach_add_([norm.get_buffer("num_batches_tracked") for norm in norms], groups.passes)
    for norm in norms:
        norm.statistics = None


def _by_group(of_norms: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Return tensors of each batch norm's groups in order of the groups."""
    return [tensor for of_group in zip(*of_norms, strict=True) for tensor in of_group]


def _shares(groups: BatchGroups) -> Iterator[tuple[float, int]]:
    """Yield the share in the buffers, and the rows on all processes, of each group that this process has rows of.

    With these shares the mean over processes is the mean over groups, also where groups are on unequally many.
    """
    for group, rows in enumerate(groups.here):
        if rows:
            of_processes = [each[group] for each in groups.of_processes if each[group]]
            share = len(groups.of_processes) * groups.passes / (len(groups.here) * len(of_processes))
            yield share, sum(of_processes)


def recomputing(network: nn.Module) -> AbstractContextManager[None]:
    """Return a context in which batch norms repeat the present pass: in its groups, without updating their buffers."""
    return _recomputing([(module, module.groups) for module in network.modules() if isinstance(module, BatchNorm)])


@contextmanager
def _recomputing(norms: list[tuple[BatchNorm, BatchGroups]]) -> Iterator[None]:
    present = [norm.groups for norm, _ in norms]
    for norm, groups in norms:
        norm.groups = groups
    try:
        with deferred_updates():  # which are dropped: the buffers already contain them
            yield
    finally:
        for (norm, _), groups in zip(norms, present, strict=True):
            norm.groups = groups


@contextmanager
def in_groups(network: nn.Module, groups: BatchGroups) -> Iterator[None]:
    """Let the batch norms of a network normalise one batch in groups; then update their running statistics."""
    norms = [module for module in network.modules() if isinstance(module, BatchNorm)]
    for norm in norms:
        norm.groups = groups
    yield
    passed = [norm for norm in norms if norm.statistics is not None]
    if passed:
        _update_buffers(passed, groups)
