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

_store: Any = None  # a store for messages of the first process to the others
_message_number = 0
_waits = 0  # of all processes for each other


def started_by_torchrun() -> bool:
    """Return whether torchrun, or a compatible scheduler, started this process as one of several."""
    return whole_number("WORLD_SIZE", 1, lowest=1) > 1 and "RANK" in os.environ


def job_id() -> str | None:
    """Return torchrun's id of this job, the same after restarts; "none" if it was given none."""
    return os.environ.get("TORCHELASTIC_RUN_ID")


def restart_count() -> int:
    """Return the number of torchrun's restarts of this job."""
    return whole_number("TORCHELASTIC_RESTART_COUNT", 0, lowest=0)


def local_rank() -> int:
    """Return this process's rank on its machine."""
    return whole_number("LOCAL_RANK", 0, lowest=0) if started_by_torchrun() else 0


def world_size() -> int:
    """Return the number of processes that share the batch."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return this process's rank."""
    return dist.get_rank() if world_size() > 1 else 0


@contextmanager
def join_process_group() -> Iterator[None]:
    """Join the processes that torchrun started, if it did, for as long as the block runs.

    When the first process leaves the block early, processes that wait for its message exit too, without an error.
    """
    global _store, _message_number, _waits
    if not started_by_torchrun() or dist.is_initialized():
        yield
        return
    store, number, processes = _rendezvous()
    # CPU tensors travel by gloo, also where gradients travel by NCCL: agreeing on a stop never waits for a GPU.
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    dist.init_process_group(
        backend,
        store=PrefixStore(f"group/{restart_count()}", store),
        rank=number,
        world_size=processes,
        timeout=PATIENCE,
    )
    _store, _message_number = PrefixStore(f"messages/{restart_count()}", store), 0
    _waits = 0
    try:
        yield
    except BaseException:
        if number == 0:
            send_message(FAILED)
        else:
            with suppress(RuntimeError):  # the first process may have closed the store
                _store.set(LEFT, "")
        raise  # without a barrier: the others may be waiting for this process
    if number == 0:
        send_message(DONE)
    dist.destroy_process_group()
    _store = None


def _rendezvous() -> tuple[Any, int, int]:
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


def send_message(message: str) -> None:
    """Send a message to the other processes."""
    global _message_number
    if _store is not None:
        _store.set(str(_message_number), message)
        _message_number += 1


def receive_message() -> str:
    """Wait without a timeout for the first process's next message; exit if it has exited."""
    global _message_number
    message = _next_message()
    _message_number += 1
    if message in (DONE, FAILED):
        sys.exit(message == FAILED)  # the first process reports the reason
    return message


def report_ready() -> None:
    """Report to the first process that this one is ready for the last message's task."""
    _store.add(f"{READY}/{_message_number}", 1)


def wait_until_all_ready() -> None:
    """Wait without a timeout until all other processes are ready for the last message's task."""
    _wait_for_count(f"{READY}/{_message_number}", world_size() - 1, LEFT)


def wait_for_all() -> None:
    """Wait without a timeout until every process calls this: one may need hours longer than another."""
    global _waits
    if _store is None:
        return
    _waits += 1
    _store.add(f"all/{_waits}", 1)
    _wait_for_count(f"all/{_waits}", world_size(), LEFT, str(_message_number))


def _wait_for_count(key: str, count: int, *ends: str) -> None:
    """Wait until a counter reaches a count; fail once one of the other keys says that a process has exited."""
    while _store.add(key, 0) < count:
        if any(_store.check([end]) for end in ends):
            raise RunFailed("another process has exited", "process")
        time.sleep(LOOK_SECONDS)


def wait_for_first_process() -> None:
    """Wait until the first process exits too: if connections closed before, it would report a failure."""
    _next_message()


def _next_message() -> str:
    assert _store is not None
    while not _store.check([str(_message_number)]):
        time.sleep(LOOK_SECONDS)
    message: str = _store.get(str(_message_number)).decode()
    return message


def first_process_failed() -> bool:
    """Return whether the first process exits within a few seconds because it failed too."""
    end = time.monotonic() + LEAVING_SECONDS
    while time.monotonic() < end:
        if _store is not None and _store.check([str(_message_number)]):
            return bool(_store.get(str(_message_number)).decode() == FAILED)
        time.sleep(LOOK_SECONDS)
    return False


def is_lost_process(error: BaseException) -> bool:
    """Return whether an error only means that another process has exited."""
    if world_size() == 1 or not isinstance(error, RuntimeError):
        return False
    return isinstance(error, dist.DistError) or any(sign in str(error) for sign in ("gloo", "Gloo", "NCCL"))
