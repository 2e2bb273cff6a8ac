"""Averaging of gradients over processes during the backward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from propos.distributed.process_group import world_size

BUCKET_BYTES = 25 * 2**20  # of gradients that are sent together

AnyTensor = TypeVar("AnyTensor", bound=Tensor)


@contextmanager
def average_gradients(parameters: Sequence[nn.Parameter], others: Sequence[Tensor] = ()) -> Iterator[None]:
    """Average the gradients of a backward pass within the block over processes, and other tensors.

    A bucket of gradients is sent as soon as it is complete, while the pass continues with earlier layers. Incomplete
    buckets and the other tensors are sent when it has ended. Buckets and their order are the same in every step, so
    sums are computed in the same order, also after resuming.
    """
    if world_size() == 1:
        yield
        return
    sending = _Sending(list(_buckets(list(reversed(parameters)))))
    with sending.listening():
        yield
    sending.end(others)


class _Sending:
    """Buckets of gradients that are sent during a backward pass."""

    def __init__(self, buckets: list[list[nn.Parameter]]) -> None:
        self.buckets = buckets
        self.missing = [len(bucket) for bucket in buckets]
        self.left = 0  # buckets that have left
        self.under_way: list[tuple[list[Tensor], Tensor, Any]] = []

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Register hooks that are called for every gradient."""
        hooks = [
            parameter.register_post_accumulate_grad_hook(partial(self._made, number))
            for number, bucket in enumerate(self.buckets)
            for parameter in bucket
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _made(self, number: int, _: Tensor) -> None:
        self.missing[number] -= 1
        # The last one is sent with the other tensors: a small network then has one message a step.
        while self.left < len(self.buckets) - 1 and not self.missing[self.left]:
            self._send(_gradients(self.buckets[self.left]))
            self.left += 1

    def _send(self, tensors: list[Tensor]) -> None:
        flat = torch.cat([_flat(tensor) for tensor in tensors])
        self.under_way.append((tensors, flat, dist.all_reduce(flat, async_op=True)))

    def end(self, others: Sequence[Tensor]) -> None:
        """Send the rest, wait for all messages and write the means."""
        rest = [gradient for bucket in self.buckets[self.left :] for gradient in _gradients(bucket)]
        for bucket in _buckets([*rest, *others]):
            self._send(bucket)
        for tensors, flat, work in self.under_way:
            work.wait()
            flat /= world_size()
            means = flat.split([tensor.numel() for tensor in tensors])
            torch._foreach_copy_([_flat(tensor) for tensor in tensors], list(means))


def _gradients(parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def _buckets(tensors: Sequence[AnyTensor]) -> Iterator[list[AnyTensor]]:
    """Yield buckets of consecutive tensors of one dtype."""
    bucket: list[AnyTensor] = []
    for tensor in tensors:
        full = sum(one.nbytes for one in bucket) + tensor.nbytes > BUCKET_BYTES
        if bucket and (full or bucket[0].dtype != tensor.dtype):
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket


def _flat(tensor: Tensor) -> Tensor:
    """Return a flat view of a tensor's memory, without a copy."""
    return tensor.as_strided((tensor.numel(),), (1,))
