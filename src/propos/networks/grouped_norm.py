"""Batch norm of a batch in groups, which may lie on several processes: torch's kernels, and what processes exchange."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.distributed import all_gather, rank, shares, world_size
from propos.distributed.transfer import send


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


def grouped_norm(
    x: Float[Tensor, "b C ..."], weight: Float[Tensor, " C"], bias: Float[Tensor, " C"], eps: float, groups: BatchGroups
) -> tuple[Float[Tensor, "b C ..."], Sequence[Float[Tensor, " C"]], Sequence[Float[Tensor, " C"]]]:
    """Normalise each row with its group's statistics; return also the mean and 1/√(variance + ε) of each group here."""
    if not torch.compiler.is_compiling():
        y, *flat = _Grouped.apply(x, weight, bias, eps, groups)  # type: ignore[no-untyped-call]
        return y, flat[::2], flat[1::2]
    if groups.shared:
        y, statistics = _shared_norm(x, weight, bias, eps, [rows for each in groups.of_processes for rows in each])
        means, inverse = statistics.unbind(dim=1)
        return y, means.unbind(), inverse.unbind()
    # Torch's compiler cannot look into kernels that write to a place; it places these results without a copy itself.
    made = [torch.native_batch_norm(part, weight, bias, None, None, True, 0.0, eps) for part in x.split(groups.rows)]
    parts, of_means, of_inverse = zip(*made, strict=True)
    return torch.cat(parts), of_means, of_inverse


class _Grouped(torch.autograd.Function):
    """Batch norm of groups by torch's kernels, each writing its group's rows to their place in the result."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float, groups: BatchGroups
    ) -> tuple[Tensor, ...]:
        y, flat = _forward(x, weight, bias, eps, groups)
        ctx.save_for_backward(x, weight, *flat)
        ctx.eps, ctx.groups = eps, groups
        ctx.mark_non_differentiable(*flat)
        ctx.set_materialize_grads(False)
        return y, *flat

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: None) -> tuple[Tensor | None, ...]:
        x, weight, *flat = ctx.saved_tensors
        return *_backward(gradient, x, weight, flat, ctx.eps, ctx.groups), None, None


def _forward(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float, groups: BatchGroups
) -> tuple[Tensor, list[Float[Tensor, " C"]]]:
    """Return the normalised batch, and the mean and 1/√(variance + ε) of one group after another."""
    y = torch.empty_like(x)
    parts, outs = x.split(groups.rows), y.split(groups.rows)
    if groups.shared:
        statistics = _statistics_over_processes(parts, eps, groups)
        for part, out, of_group in zip(parts, outs, statistics, strict=True):
            _normalise(part, weight, bias, of_group, eps, out)
    else:
        statistics = list(weight.new_empty((len(parts), 2, len(weight))))
        for part, out, (mean, inverse) in zip(parts, outs, statistics, strict=True):
            torch.ops.aten.native_batch_norm.out(
                part, weight, bias, None, None, True, 0.0, eps, out=out, save_mean=mean, save_invstd=inverse
            )
    return y, [each for of_group in statistics for each in of_group]


def _backward(
    gradient: Tensor, x: Tensor, weight: Tensor, flat: Sequence[Tensor], eps: float, groups: BatchGroups
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of the batch, the weight and the bias."""
    if groups.shared and gradient.stride() != x.stride():  # CUDA's kernel takes them for equal
        gradient = torch.empty_like(x).copy_(gradient)
    pieces = list(zip(gradient.split(groups.rows), x.split(groups.rows), flat[::2], flat[1::2], strict=True))
    if groups.shared:
        made = [_sums(*piece, weight, eps) for piece in pieces]
        exchanged = _exchanged([each for *_, slope, level in made for each in (slope, level)], groups)
        sources = _sources(groups, x[0, 0].numel(), x.device)
        of_parts = [
            _of_input(piece, weight, exchanged[source.places].sum(dim=0), source)
            for piece, source in zip(pieces, sources, strict=True)
        ]
        of_parameters = [each for of_part in made for each in of_part[:2]]
    else:
        kernel, wanted = torch.ops.aten.native_batch_norm_backward, [True, True, True]
        all_made = [kernel(g, part, weight, None, None, *rest, True, eps, wanted) for g, part, *rest in pieces]
        of_parts = [of_part for of_part, _, _ in all_made]
        of_parameters = [each for _, *both in all_made for each in both]
    if len(pieces) == 1:  # a copy would be needless
        of_weight, of_bias = of_parameters
        return of_parts[0], of_weight, of_bias
    of_weight, of_bias = torch.stack(of_parameters).view(len(pieces), 2, -1).sum(dim=0)
    return torch.cat(of_parts), of_weight, of_bias


# Groups on several processes, as operations that torch's compiler does not look into. `rows` are those of each process.


@torch.library.custom_op(
    "propos::shared_norm",
    mutates_args=(),
    schema="(Tensor x, Tensor weight, Tensor bias, float eps, int[] rows) -> (Tensor, Tensor)",
)
def _shared_norm(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float, rows: Sequence[int]
) -> tuple[Float[Tensor, "b C ..."], Float[Tensor, "G 2 C"]]:
    """Return the normalised batch, and the mean and 1/√(variance + ε) of each group that this process has rows of."""
    y, flat = _forward(x, weight, bias, eps, _shared_groups(rows))
    return y, torch.stack(flat).view(-1, 2, x.shape[1])


@torch.library.custom_op(
    "propos::shared_norm_backward",
    mutates_args=(),
    schema="(Tensor gradient, Tensor x, Tensor weight, Tensor statistics, float eps, int[] rows)"
    " -> (Tensor, Tensor, Tensor)",
)
def _shared_norm_backward(
    gradient: Tensor, x: Tensor, weight: Tensor, statistics: Float[Tensor, "G 2 C"], eps: float, rows: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    groups = _shared_groups(rows)
    of_x, of_weight, of_bias = _backward(gradient, x, weight, statistics.flatten(0, 1).unbind(), eps, groups)
    return of_x, of_weight.clone(), of_bias.clone()  # the results of an operation may not share memory


def _shared_groups(rows: Sequence[int]) -> BatchGroups:
    count = len(rows) // world_size()
    of_processes = tuple(tuple(rows[start : start + count]) for start in range(0, len(rows), count))
    return BatchGroups(of_processes, rank(), shared=True)


@_shared_norm.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, eps: float, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), weight.new_empty((len(_shared_groups(rows).rows), 2, x.shape[1]))


@_shared_norm_backward.register_fake
def _(
    gradient: Tensor, x: Tensor, weight: Tensor, statistics: Tensor, eps: float, rows: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, weight, _, ctx.eps, ctx.rows = inputs
    ctx.save_for_backward(x, weight, output[1])
    ctx.mark_non_differentiable(output[1])


def _shared_gradients(ctx: Any, gradient: Tensor, _: None) -> tuple[Tensor | None, ...]:
    return *_shared_norm_backward(gradient, *ctx.saved_tensors, ctx.eps, ctx.rows), None, None


_shared_norm.register_autograd(_shared_gradients, setup_context=_save_for_backward)


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
    part: Tensor, weight: Tensor, bias: Tensor, statistics: tuple[Tensor, Tensor], eps: float, out: Tensor
) -> None:
    """Write (x − mean) · inverse · weight + bias of a group's rows."""
    mean, inverse = statistics
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
    piece: tuple[Tensor, Tensor, Tensor, Tensor], weight: Tensor, sums: Float[Tensor, "2 C"], source: _Source
) -> Tensor:
    """Return the gradient of a group's rows: weight · inverse · (g − level/n − (x − mean) · inverse² · slope/n)."""
    gradient, part, mean, inverse = piece
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
