"""Passes through a network at the same time on a CPU, each on a thread of its own.

A step's two views have half of the cores each, so that on two cores no pass waits for another thread of OpenMP: other
programs slow a run down only by the share of the cores that they take, and results do not depend on their number.
With one thread (OMP_NUM_THREADS=1, which torchrun sets) they come one after another. Small parts of a frozen network's
images have one thread each.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from propos.networks.norm import deferred_updates

PASSES = 2  # at the same time: the two views of a step
_AT_A_TIME = ContextVar("passes at the same time", default=PASSES)
MOST_PARTS = 8  # at the same time, on as many cores
Result = TypeVar("Result")
Part = TypeVar("Part")
Pass = Callable[[Tensor], Tensor]


@contextmanager
def threads_of_a_pass(device: torch.device) -> Iterator[None]:
    """Return a context in which torch uses the threads of one pass, here and on the threads of passes.

    Where another device than the CPU passes networks, the host keeps all of its threads.
    """
    if device.type != "cpu":
        yield
        return
    before = torch.get_num_threads()
    token = _AT_A_TIME.set(min(PASSES, before))
    torch.set_num_threads(max(1, before // PASSES))
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _AT_A_TIME.reset(token)


def pass_views(module: Pass, views: Sequence[Tensor], passed: Pass) -> list[Tensor]:
    """Return `passed(view)`, a pass through the module, of each view; batch norm is updated in the views' order.

    If the module has forward hooks or is compiled, passes come one after another: hooks see the views in order, and
    torch's compiler is not safe for threads.
    """
    owner = _owner(module)
    if owner is None:
        return [passed(view) for view in views]
    parameters = [each for each in owner.parameters() if each.requires_grad]
    if torch.is_grad_enabled() and parameters:
        return list(_Passes.apply(passed, len(views), *views, *parameters))  # type: ignore[no-untyped-call]
    return _pass_views(passed, views)


def pass_rows(module: nn.Module, rows: Tensor, passed: Callable[[Tensor], Any]) -> Any:
    """Return `passed(rows)`, a pass through the module in eval mode: a tensor or a tuple of them.

    The batch is passed in two parts, unless the module has forward hooks or is compiled.
    """
    if _owner(module) is None:
        return passed(rows)
    return _join(_at_once(torch.no_grad()(passed), rows.chunk(PASSES)))


def pass_parts(passed: Callable[[Part], Tensor], parts: Sequence[Part]) -> list[Tensor]:
    """Return `passed(part)`, a pass on one thread, of each part, in order; as many at a time as torch has threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return list(_threads(min(threads, MOST_PARTS), 1).map(passed, parts))
    finally:
        torch.set_num_threads(threads)


class _Passes(torch.autograd.Function):
    """The passes as one operation: its backward pass runs on the same threads, and adds gradients in a fixed order."""

    @staticmethod
    def forward(ctx: Any, passed: Pass, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.views = [view.detach().requires_grad_(view.requires_grad) for view in tensors[:count]]
        ctx.parameters = tensors[count:]
        with torch.enable_grad():
            ctx.outputs = _pass_views(passed, ctx.views)
        return tuple(output.detach() for output in ctx.outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        def of_view(view: Tensor, output: Tensor, gradient: Tensor) -> list[Tensor | None]:
            wanted = [*([view] if view.requires_grad else []), *ctx.parameters]
            found = torch.autograd.grad(output, wanted, gradient, allow_unused=True)
            return [*([] if view.requires_grad else [None]), *found]

        found = _at_once(of_view, ctx.views, ctx.outputs, gradients)
        ctx.outputs = None
        of_parameters = [_sum(of_views) for of_views in zip(*(each[1:] for each in found), strict=True)]
        return None, None, *(each[0] for each in found), *of_parameters


def _owner(module: Pass) -> nn.Module | None:
    """Return the module that a pass belongs to; None if it has to stay on this thread."""
    owner = module.__self__ if inspect.ismethod(module) else module
    if not isinstance(owner, nn.Module) or any(map(_is_watched_or_compiled, owner.modules())):
        return None
    return owner


def _is_watched_or_compiled(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or module._compiled_call_impl)


def _pass_views(passed: Pass, views: Sequence[Tensor]) -> list[Tensor]:
    learns = torch.is_grad_enabled()

    def one(view: Tensor) -> tuple[Tensor, list[Callable[[], None]]]:
        with torch.set_grad_enabled(learns), deferred_updates() as updates:
            return passed(view), updates

    outputs, updates = zip(*_at_once(one, views), strict=True)
    for of_view in updates:
        for update in of_view:
            update()
    return list(outputs)


def _sum(gradients: Sequence[Tensor | None]) -> Tensor | None:
    given = [each for each in gradients if each is not None]
    return sum(given[1:], start=given[0]) if given else None


def _join(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if isinstance(first, tuple):
        return tuple(_join(each) for each in zip(*parts, strict=True))
    return None if first is None else torch.cat(list(parts))


def _at_once(action: Callable[..., Result], *arguments: Sequence[Any]) -> list[Result]:
    """Call an action for each tuple of arguments, at the same time with two threads; return the results in order."""
    if _AT_A_TIME.get() == 1:
        return list(map(action, *arguments))
    return list(_threads(PASSES, torch.get_num_threads()).map(action, *arguments))


@cache
def _threads(passes: int, of_each: int) -> ThreadPoolExecutor:
    """Return the threads that passes run on; on each of them torch uses `of_each` threads."""
    start = torch.set_num_threads
    return ThreadPoolExecutor(passes, thread_name_prefix="propos-pass", initializer=start, initargs=(of_each,))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)  # a child process has none of the threads
