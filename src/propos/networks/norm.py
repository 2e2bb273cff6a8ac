"""Batch norm over a fixed number of groups of the global batch, whatever the number of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from propos.networks.grouped_norm import BatchGroups, grouped_norm

ALONE = BatchGroups(((),))
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
        normalised, means, inverse = grouped_norm(x, self.weight, self.bias, self.eps, groups)
        if updates is None:
            self.statistics = Statistics(means, inverse, x[0, 0].numel())
        return normalised

    def _update(self, mean: Tensor, variance: Tensor) -> None:
        """Add a batch's statistics to the running ones."""
        self.get_buffer("num_batches_tracked").add_(1)
        for buffer, statistics in zip(self.running(), (mean, variance), strict=True):
            buffer.lerp_(statistics, self.momentum or 0.0)

    def running(self) -> tuple[Float[Tensor, " C"], Float[Tensor, " C"]]:
        """Return the running mean and variance, to be updated.

        Torch's kernel saves both for the backward pass, which reads neither in training mode. As `data`, they may
        change before it, where a network passes twice in a step.
        """
        return self.get_buffer("running_mean").data, self.get_buffer("running_var").data

    def _check_input_dim(self, input: Tensor) -> None:
        assert input.ndim in (2, 4)


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
    buffers = [buffer for each in zip(*(norm.running() for norm in norms), strict=True) for buffer in each]
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
