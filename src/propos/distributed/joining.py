"""The process group: joining it, messages outside of training, and leaving it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore, rendezvous  # type: ignore[attr-defined]  # torch leaves them out of its types

from propos.common.environment import whole_number
from propos.common.errors import InputError, RunFailed

# The timeout for a process that hangs; one that dies is noticed at once, by closed connections and by torchrun.
PATIENCE = timedelta(minutes=15)
LOOK_SECONDS = 0.05
LEAVING_SECONDS = 5.0
DONE, FAILED = "done", "failed"
UNNAMED_JOB = "none"  # torchrun's default
READY, LEFT = "ready", "left"

_words: Any = None  # a store for messages of the first process to the others
_heard = 0


def launched() -> bool:
    """Return whether torchrun, or a compatible scheduler, started this process as one of several."""
    return whole_number("WORLD_SIZE", 1, lowest=1) > 1 and "RANK" in os.environ


def job() -> str | None:
    """Return torchrun's id of this job, the same after restarts; "none" if it was given none."""
    return os.environ.get("TORCHELASTIC_RUN_ID")


def restarts() -> int:
    """Return the number of torchrun's restarts of this job."""
    return whole_number("TORCHELASTIC_RESTART_COUNT", 0, lowest=0)


def local_rank() -> int:
    """Return this process's rank on its machine."""
    return whole_number("LOCAL_RANK", 0, lowest=0) if launched() else 0


def world_size() -> int:
    """Return the number of processes that share the batch."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return this process's rank."""
    return dist.get_rank() if world_size() > 1 else 0


@contextmanager
def joined() -> Iterator[None]:
    """Join the processes that torchrun started, if it did, for as long as the block runs.

    When the first process leaves the block early, processes that wait for its message exit too, without an error.
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
            with suppress(RuntimeError):  # the first process may have closed the store
                _words.set(LEFT, "")
        raise  # without a barrier: the others may be waiting for this process
    if number == 0:
        tell(DONE)
    dist.destroy_process_group()
    _words = None


def _met() -> tuple[Any, int, int]:
    """Connect to the other processes; return the shared store, this process's rank and the number of processes."""
    whole_number("RANK", 0, lowest=0, highest=whole_number("WORLD_SIZE", 1, lowest=1) - 1)
    whole_number("MASTER_PORT", 0, lowest=0, highest=65_535)
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if not os.environ.get(name):
            raise InputError(
                f"the environment has WORLD_SIZE and RANK but no {name}: start it with torchrun or unset them"
            )
    try:
        store, number, processes = next(iter(rendezvous("env://", timeout=PATIENCE)))
    except RuntimeError as error:  # torch 2.6 has no error of its own for a port that is taken
        raise RunFailed(f"the processes cannot connect: {str(error).splitlines()[0]}", "process") from None
    return store, number, processes


def tell(words: str) -> None:
    """Send a message to the other processes."""
    global _heard
    if _words is not None:
        _words.set(str(_heard), words)
        _heard += 1


def hear() -> str:
    """Wait without a timeout for the first process's next message; exit if it has exited."""
    global _heard
    words = _next_words()
    _heard += 1
    if words in (DONE, FAILED):
        sys.exit(words == FAILED)  # the first process reports the reason
    return words


def say_ready() -> None:
    """Report to the first process that this one is ready for the last message's task."""
    _words.add(f"{READY}/{_heard}", 1)


def await_ready() -> None:
    """Wait without a timeout until all other processes are ready for the last message's task."""
    while _words.add(f"{READY}/{_heard}", 0) < world_size() - 1:
        if _words.check([LEFT]):
            raise RunFailed("another process has exited", "process")
        time.sleep(LOOK_SECONDS)


def await_first() -> None:
    """Wait until the first process exits too: if connections closed before, it would report a failure."""
    _next_words()


def _next_words() -> str:
    assert _words is not None
    while not _words.check([str(_heard)]):
        time.sleep(LOOK_SECONDS)
    words: str = _words.get(str(_heard)).decode()
    return words


def first_leaves_too() -> bool:
    """Return whether the first process exits within a few seconds because it failed too."""
    end = time.monotonic() + LEAVING_SECONDS
    while time.monotonic() < end:
        if _words is not None and _words.check([str(_heard)]):
            return bool(_words.get(str(_heard)).decode() == FAILED)
        time.sleep(LOOK_SECONDS)
    return False


def lost_another(error: BaseException) -> bool:
    """Return whether an error only means that another process has exited."""
    if world_size() == 1 or not isinstance(error, RuntimeError):
        return False
    return isinstance(error, dist.DistError) or any(sign in str(error) for sign in ("gloo", "Gloo", "NCCL"))
