"""Decoding on all cores, in processes of its own."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from propos.common.environment import whole_number
from propos.data.decoding.worker import Decoded, decode_all, pack, receive, send
from propos.data.files.entry import Entry

CRASHED = "crashed its decoder"
# In a process group of its own a worker does not hear the Ctrl-C meant for us; it ends when we close its input.
_APART: dict[str, Any]
if sys.platform == "win32":
    _APART = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
else:
    _APART = {"process_group": 0}
# Not multiprocessing: that would run a person's script once more in every process unless it is guarded against it,
# and forking a process that runs torch's threads can hang.
_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from propos.data.decoding.worker import main; main()"


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def own_cores() -> int:
    """Return this process's share of the cores, where torchrun started several on this machine."""
    return max(1, cores() // whole_number("LOCAL_WORLD_SIZE", 1, lowest=1))


class DecodePool:
    """Decodes lists of images in worker processes; with 0 workers, in this one."""

    def __init__(
        self, side: int, channels: int, workers: int | None = None, draft: bool = True, shaped: bool = False
    ) -> None:
        self.layout: dict[str, Any] = {"side": side, "channels": channels, "draft": draft, "shaped": shaped}
        self.workers = cores() if workers is None else workers
        self._idle: queue.SimpleQueue[_Worker | None] = queue.SimpleQueue()
        self._running: set[_Worker] = set()
        self._closed = False
        for _ in range(self.workers):
            self._idle.put(None)  # started when first needed
        self._threads = ThreadPoolExecutor(max(1, self.workers))

    def submit(self, entries: Sequence[Entry], middle: int = 0) -> Future[Decoded]:
        """Begin to decode a few images; with `middle`, their middle squares of this side."""
        layout = {**self.layout, "middle": middle}
        if self.workers == 0:
            done: Future[Decoded] = Future()
            done.set_result(decode_all(entries, **layout))
            return done
        return self._threads.submit(self._decode, entries, layout)

    def in_order(self, jobs: Iterable[Sequence[Entry]]) -> Iterator[Decoded]:
        """Decode many lists, a few of them ahead, and yield them in their order."""
        ahead: deque[Future[Decoded]] = deque()
        for job in jobs:
            ahead.append(self.submit(job))
            if len(ahead) > 2 * self.workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()

    def close(self) -> None:
        """Stop the worker processes at once."""
        self._closed = True
        for worker in list(self._running):
            worker.stop()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in list(self._running):
            worker.stop()
        self._running.clear()

    def __enter__(self) -> DecodePool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decode(self, entries: Sequence[Entry], layout: dict[str, Any]) -> Decoded:
        worker, done = self._idle.get(), None
        try:
            if worker is None and not self._closed:
                worker = _Worker()
                self._running.add(worker)
            if worker is not None and not self._closed:
                done = worker.decode(entries, layout)
        finally:
            if worker is not None and worker.gone:
                worker.stop()
                self._running.discard(worker)
                worker = None
            self._idle.put(worker)
        if done is not None:
            return done
        if self._closed:
            raise RuntimeError("the decoding was stopped")
        if len(entries) > 1:  # one of them ended the process: find out which
            return _joined([self._decode([entry], layout) for entry in entries])
        return Decoded(np.empty(0, np.uint8), [], layout["channels"], [], {0: CRASHED})


class _Worker:
    """One worker process."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            **_APART,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._input, self._output = self.process.stdin, self.process.stdout
        self.gone = False
        if receive(self._output) is None:
            self.stop()
            raise RuntimeError("a process that decodes images did not start")

    def decode(self, entries: Sequence[Entry], layout: dict[str, Any]) -> Decoded | None:
        """Have a few images decoded; nothing when the process ended over them."""
        frames, pixels, size, channels = [], b"", 0, layout["channels"]
        try:
            send(self._input, {"entries": [pack(entry) for entry in entries], "layout": layout})
            answer = receive(self._output)
            if answer is not None:
                frames = [(rows, columns) for rows, columns in answer["frames"]]
                size = channels * sum(rows * columns for rows, columns in frames)
                pixels = self._output.read(size)
        except (OSError, ValueError):  # its pipes are closed
            answer = None
        if answer is None or len(pixels) != size:
            self.gone = True
            return None
        flat = np.frombuffer(pixels, np.uint8)
        return Decoded(flat, frames, channels, answer["aspects"], dict(answer["failed"]))

    def stop(self) -> None:
        """End the process."""
        self.gone = True
        self.process.kill()
        self.process.wait()
        for pipe in (self._input, self._output):
            with contextlib.suppress(OSError, ValueError):
                pipe.close()


def _joined(parts: Sequence[Decoded]) -> Decoded:
    """Join the outcomes of single images."""
    return Decoded(
        np.concatenate([part.pixels for part in parts]),
        [frame for part in parts for frame in part.frames],
        parts[0].channels,
        [aspect for part in parts for aspect in part.aspects],
        {position: part.failed[0] for position, part in enumerate(parts) if part.failed},
    )
