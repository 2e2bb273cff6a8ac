"""The only file that names torch.distributed. Everything here works, and costs nothing, in a single process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.distributed import PrefixStore, rendezvous  # type: ignore[attr-defined]  # torch leaves them out of its types

from propos.environment import whole_number
from propos.errors import InputError, RunFailed

# A process that dies is noticed at once, by its closed connections and by torchrun; one that hangs, after this.
PATIENCE = timedelta(minutes=15)
BUCKET_BYTES = 25 * 2**20  # gradients travel together in pieces of this size
PIECE_BYTES = 64 * 2**20  # what is collected for the run folder, in pieces of this size
FEW_BYTES = 64 * 2**10  # so little is gathered from all rather than reduced
LOOK_SECONDS = 0.05
LEAVING_SECONDS = 5.0
DONE, FAILED = "done", "failed"
UNNAMED_JOB = "none"  # torchrun's word
READY, LEFT = "ready", "left"

AnyTensor = TypeVar("AnyTensor", bound=Tensor)

_words: Any = None  # a store where the first process leaves words for the others
_heard = 0


def launched() -> bool:
    """Return whether torchrun, or a scheduler that speaks as it does, started this process as one of several."""
    return whole_number("WORLD_SIZE", 1, lowest=1) > 1 and "RANK" in os.environ


def job() -> str | None:
    """Return what torchrun calls this job, restarts included; "none" where it was given no name."""
    return os.environ.get("TORCHELASTIC_RUN_ID")


def restarts() -> int:
    """Return how often torchrun has started this job again."""
    return whole_number("TORCHELASTIC_RESTART_COUNT", 0, lowest=0)


def local_rank() -> int:
    """Return this process's number on its machine."""
    return whole_number("LOCAL_RANK", 0, lowest=0) if launched() else 0


def world_size() -> int:
    """Return how many processes share the batch."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return this process's number among those that share the batch."""
    return dist.get_rank() if world_size() > 1 else 0


@contextmanager
def joined() -> Iterator[None]:
    """Join the processes that torchrun started, if it did, for as long as the block runs.

    When the first process leaves the block early, those that wait for its word leave too, without one of their own.
    """
    global _words, _heard
    if not launched() or dist.is_initialized():
        yield
        return
    store, number, processes = _met()
    # CPU tensors travel by gloo, also where gradients travel by NCCL: agreeing on a stop never waits for a GPU.
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    dist.init_process_group(
        backend, store=PrefixStore(f"group/{restarts()}", store), rank=number, world_size=processes, timeout=PATIENCE
    )
    _words, _heard = PrefixStore(f"words/{restarts()}", store), 0
    try:
        yield
    except BaseException:
        if number == 0:
            tell(FAILED)
        else:
            with suppress(RuntimeError):  # the store may be gone with the first process
                _words.set(LEFT, "")
        raise  # without taking leave of the others, who may be waiting for us
    if number == 0:
        tell(DONE)
    dist.destroy_process_group()
    _words = None


def _met() -> tuple[Any, int, int]:
    """Meet the other processes; return the store that they share, this one's number and how many there are."""
    whole_number("RANK", 0, lowest=0, highest=whole_number("WORLD_SIZE", 1, lowest=1) - 1)
    whole_number("MASTER_PORT", 0, lowest=0, highest=65_535)
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if not os.environ.get(name):
            raise InputError(
                f"the environment has WORLD_SIZE and RANK but no {name}: start it with torchrun or unset them"
            )
    try:
        store, number, processes = next(iter(rendezvous("env://", timeout=PATIENCE)))
    except dist.DistError as error:
        raise RunFailed(f"the processes do not meet: {str(error).splitlines()[0]}", "process") from None
    return store, number, processes


def tell(words: str) -> None:
    """Leave word for the other processes."""
    global _heard
    if _words is not None:
        _words.set(str(_heard), words)
        _heard += 1


def hear() -> str:
    """Wait, for as long as it takes, for the first process's next words; leave when it has left."""
    global _heard
    words = _next_words()
    _heard += 1
    if words in (DONE, FAILED):
        sys.exit(words == FAILED)  # the first process says why
    return words


def say_ready() -> None:
    """Let the first process know that this one can do what it heard of last."""
    _words.add(f"{READY}/{_heard}", 1)


def await_ready() -> None:
    """Wait, for as long as it takes them to read their images, until all others can do what they were told last."""
    while _words.add(f"{READY}/{_heard}", 0) < world_size() - 1:
        if _words.check([LEFT]):
            raise RunFailed("another process has left", "process")
        time.sleep(LOOK_SECONDS)


def await_first() -> None:
    """Wait until the first process leaves too: one that lost the others' connections before would call it a failure."""
    _next_words()


def _next_words() -> str:
    assert _words is not None
    while not _words.check([str(_heard)]):
        time.sleep(LOOK_SECONDS)
    words: str = _words.get(str(_heard)).decode()
    return words


def first_leaves_too() -> bool:
    """Return whether the first process leaves within the next seconds because something failed there as well."""
    end = time.monotonic() + LEAVING_SECONDS
    while time.monotonic() < end:
        if _words is not None and _words.check([str(_heard)]):
            return bool(_words.get(str(_heard)).decode() == FAILED)
        time.sleep(LOOK_SECONDS)
    return False


def lost_another(error: BaseException) -> bool:
    """Return whether an error only says that another process is gone."""
    if world_size() == 1 or not isinstance(error, RuntimeError):
        return False
    return isinstance(error, dist.DistError) or any(sign in str(error) for sign in ("gloo", "Gloo", "NCCL"))


def shares(total: int) -> list[slice]:
    """Return which of so many rows are each process's: one run of them, all as long to one row."""
    bounds = [total * number // world_size() for number in range(world_size() + 1)]
    return [slice(start, stop) for start, stop in pairwise(bounds)]


def share(total: int) -> slice:
    """Return which of so many rows are this process's."""
    return shares(total)[rank()]


def any_process(*flags: bool) -> tuple[bool, ...]:
    """Return for each flag whether it is raised on any process."""
    if world_size() == 1:
        return flags
    return tuple(each_process(torch.tensor(flags)).any(dim=0).tolist())


def sum_over_processes(local: Tensor) -> Tensor:
    """Return the sum of every process's tensor, the same bits on each; no gradient passes.

    A few numbers are gathered and added up here: one exchange instead of the two of a sum that spares bytes.
    """
    if world_size() == 1:
        return local
    if local.nbytes * world_size() <= FEW_BYTES:
        return each_process(local).sum(dim=0, dtype=local.dtype)
    total = local.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total


@contextmanager
def averaged(parameters: Sequence[nn.Parameter], others: Sequence[Tensor] = ()) -> Iterator[None]:
    """Put the mean over processes in the place of the gradients that a backward pass within makes, and of others.

    A bucket of gradients is sent when the pass has made all of it, while the pass goes on to earlier layers; what never
    fills, and the others, when it has ended. Buckets are the same in every step and leave in the same order, so that
    sums are taken in the same order too, whatever was resumed in between.
    """
    if world_size() == 1:
        yield
        return
    sending = _Sending(list(_buckets(list(reversed(parameters)))))
    with sending.listening():
        yield
    sending.end(others)


def each_process(local: Tensor) -> Tensor:
    """Return every process's tensor, all of one shape, stacked in rank order; no gradient passes."""
    if world_size() == 1:
        return local[None]
    parts = [torch.empty_like(local, memory_format=torch.contiguous_format) for _ in range(world_size())]
    dist.all_gather(parts, local.detach().contiguous())
    return torch.stack(parts)


def rows_of_all(local: Float[Tensor, "n D"], positions: Int[Tensor, " M"], total: int) -> Float[Tensor, "M D"]:
    """Return on every process some rows of a table of which each holds its share; no gradient passes."""
    if world_size() == 1:
        return local[positions]
    mine = share(total)
    here = (positions >= mine.start) & (positions < mine.stop)
    rows = local.new_zeros((len(positions), *local.shape[1:]))
    rows[here] = local[positions[here] - mine.start]
    return sum_over_processes(rows)


def from_first_process(local: Tensor) -> Tensor:
    """Return the first process's tensor."""
    if world_size() == 1:
        return local
    copy = local.detach().clone(memory_format=torch.contiguous_format)
    dist.broadcast(copy, src=0)
    return copy


def bytes_from_first_process(content: bytes | None) -> bytes | None:
    """Return the first process's bytes, or nothing when it has none."""
    if world_size() == 1:
        return content
    length = int(from_first_process(torch.tensor(-1 if content is None else len(content))))
    if length < 0:
        return None
    if rank() > 0 or content is None:
        content = bytes(length)
    return from_first_process(torch.frombuffer(bytearray(content), dtype=torch.uint8)).numpy().tobytes()


def texts_of_each_process(text: str) -> list[str]:
    """Return every process's text, in rank order, on all of them."""
    if world_size() == 1:
        return [text]
    content = torch.tensor(list(text.encode()), dtype=torch.uint8)
    lengths = each_process(torch.tensor(len(content))).tolist()
    padded = torch.zeros(max(lengths), dtype=torch.uint8)
    padded[: len(content)] = content
    return [bytes(row[:length].tolist()).decode() for row, length in zip(each_process(padded), lengths, strict=True)]


def collect(local: Float[Tensor, "n ..."], total: int) -> Float[Tensor, "N ..."] | None:
    """Return all processes' rows, each its share of so many, on the first process and nothing elsewhere.

    They travel a piece at a time, so that no process but the first ever holds more than its own and a piece.
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
    alike, the sum of them is W times this process's own and needs no message, and the mean over processes of what
    reaches the parameters is exactly the one-process gradient. With `total`, each process has its share of so many
    rows; without, as many as the others.
    """
    if world_size() == 1:
        return local
    gathered: Tensor = _Gather.apply(local, total or len(local) * world_size())  # type: ignore[no-untyped-call]
    return gathered


def gather_together(tensors: Sequence[Float[Tensor, "b _"]], total: int) -> list[Float[Tensor, "B _"]]:
    """Gather tables of as many rows in one go; those without a gradient stay without."""
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
        padded = local.new_zeros((max(rows), *local.shape[1:]))
        padded[: len(local)] = local
        parts = [torch.empty_like(padded) for _ in rows]
        dist.all_gather(parts, padded)
        return torch.cat([part[:filled] for part, filled in zip(parts, rows, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return world_size() * gradients[0][ctx.share], None


class _Sending:
    """Gradients on their way, bucket after bucket, as a backward pass makes them."""

    def __init__(self, buckets: list[list[nn.Parameter]]) -> None:
        self.buckets = buckets
        self.missing = [len(bucket) for bucket in buckets]
        self.left = 0  # buckets that have left
        self.under_way: list[tuple[list[Tensor], Tensor, Any]] = []

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear of every gradient that is made."""
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
        # The last one waits for what else is sent: a small network then has one message a step.
        while self.left < len(self.buckets) - 1 and not self.missing[self.left]:
            self._send(_gradients(self.buckets[self.left]))
            self.left += 1

    def _send(self, tensors: list[Tensor]) -> None:
        flat = torch.cat([_flat(tensor) for tensor in tensors])
        self.under_way.append((tensors, flat, dist.all_reduce(flat, async_op=True)))

    def end(self, others: Sequence[Tensor]) -> None:
        """Send what is left, wait for everything and put the means in their places."""
        rest = [gradient for bucket in self.buckets[self.left :] for gradient in _gradients(bucket)]
        for bucket in _buckets([*rest, *others]):
            self._send(bucket)
        for tensors, flat, work in self.under_way:
            work.wait()
            flat /= world_size()
            for tensor, mean in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
                _flat(tensor).copy_(mean)


def _gradients(parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def _buckets(tensors: Sequence[AnyTensor]) -> Iterator[list[AnyTensor]]:
    """Yield runs of tensors of one kind that together fill a bucket."""
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
    """Return a tensor's values in the order they lie in memory, without a copy."""
    return tensor.as_strided((tensor.numel(),), (1,))
