"""The queue of work: a small file, and a thread that starts the next command when one has ended."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from propos.common.errors import EXIT_INTERRUPTED, InputError
from propos.common.plain import read_text
from propos.review.studio import processes
from propos.review.studio.work import Work
from propos.runs import write_atomically

FILE, PROCESSES = "queue.json", "work"
EVERY = 0.5  # seconds between two looks at a process
MOST_KEPT, MOST_WAITING = 60, 200
MOST_BYTES = 4_000_000
SIGNALLED = 128  # exit codes of a shell from which on a signal ended the command
ENDED = ("done", "failed", "paused")
KILLED = "the program was killed; what it had saved is kept: resume it"


class Queue:
    """All work that waits, computes or has ended lately. At most one heavy piece computes at a time."""

    def __init__(self, folder: Path, runs: Path) -> None:
        self.file, self.processes, self.runs = folder / FILE, folder / PROCESSES, runs
        self.processes.mkdir(parents=True, exist_ok=True)
        self.lock, self._wake, self._closed = threading.RLock(), threading.Event(), False
        self._children: list[subprocess.Popen[bytes]] = []  # ended ones are collected
        self._check: Callable[[Work], None] = lambda work: None
        self.all: list[Work] = _read(self.file)
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self, check: Callable[[Work], None]) -> None:
        """Start to work; `check` raises InputError if a piece of work must not be started."""
        self._check = check
        self._thread.start()

    def close(self) -> None:
        """Start no more commands; those that compute continue."""
        self._closed = True
        self._wake.set()
        self._thread.join()

    def add(self, work: Work) -> Work:
        """Add a piece of work; one that is known by its id is not added again, as when an answer was lost."""
        with self.lock:
            known = self.find(work.id)
            if known is not None:
                return known
            if sum(each.state not in ENDED for each in self.all) >= MOST_WAITING:
                raise InputError(f"{MOST_WAITING} tasks are waiting already: wait until some are done")
            self.all.append(work)
            self._changed()
            return work

    def find(self, identity: str) -> Work | None:
        """Return a piece of work by its id."""
        return next((work for work in self.all if work.id == identity), None)

    def of_run(self, run: str) -> Work | None:
        """Return the latest work that computes a run."""
        return next((work for work in reversed(self.all) if work.run == run and work.kind == "run"), None)

    def pause(self, work: Work) -> None:
        """Stop a piece of work; a run keeps what it has. Asked again, a process ends at once."""
        with self.lock:
            if work.state == "waiting":
                work.state = "paused"
            elif work.state in ("working", "stopping"):
                work.state = "stopping"
                processes.stop(self._path(work))
            self._changed()

    def resume(self, work: Work) -> None:
        """Queue a piece of work again that was stopped or failed."""
        with self.lock:
            if work.state in ENDED:
                work.state, work.message = "waiting", ""
                self.all.remove(work)
                self.all.append(work)
            self._changed()

    def forget(self, work: Work) -> None:
        """Remove a piece of work that has ended."""
        with self.lock:
            if work.state not in ENDED:
                raise InputError(f"{work.run}: is still computing: stop it first")
            self.all.remove(work)
            processes.remove(self._path(work))
            self._changed()

    def _work(self) -> None:
        while not self._closed:
            with self.lock, suppress(OSError):  # a full disk: tried again
                self._look()
                busy = any(work.state in ("working", "stopping") for work in self.all)
            self._wake.wait(EVERY if busy else None)
            self._wake.clear()

    def _look(self) -> None:
        """Notice what has ended, and start what may start."""
        self._children = [child for child in self._children if child.poll() is None]
        for work in self.all:
            if work.state in ("working", "stopping") and not processes.is_alive(self._path(work)):
                self._settle(work)
        for work in list(self.all):
            computing = any(each.heavy and each.state in ("working", "stopping") for each in self.all)
            if work.state == "waiting" and not (work.heavy and computing):
                self._begin(work)

    def _settle(self, work: Work) -> None:
        """Record how a command ended, and start the next one of the same work."""
        path = self._path(work)
        code = processes.exit_code(path)
        if code == 0:
            work.step += 1
        if code == 0 or not processes.was_started(path):  # the server was killed before it started the command
            self._begin(work)
            return
        paused = code == EXIT_INTERRUPTED or work.state == "stopping"
        said = KILLED if code is None or code >= SIGNALLED else processes.last_line(path) or f"ended with code {code}"
        work.state, work.message = ("paused", "") if paused else ("failed", said)
        self._save()

    def _begin(self, work: Work) -> None:
        path = self._path(work)
        try:
            command = work.command(self.runs)
            if command is not None:
                self._check(work)
            processes.forget(path)
            work.state = "done" if command is None else "working"
            self._save()  # before it starts: a server that is killed here starts it again
            if command is not None:
                self._children.append(processes.start(path, command))
        except (InputError, OSError) as error:
            work.state, work.message = "failed", str(error)
            self._save()

    def _path(self, work: Work) -> Path:
        return self.processes / work.id

    def _changed(self) -> None:
        self._save()
        self._wake.set()

    def _save(self) -> None:
        """Write the file, without what ended long ago."""
        ended = [work for work in self.all if work.state in ENDED]
        for work in ended[: max(0, len(ended) - MOST_KEPT)]:
            self.all.remove(work)
            processes.remove(self._path(work))
        lines: list[dict[str, Any]] = [work.model_dump() for work in self.all]
        write_atomically(self.file, json.dumps(lines, indent=1).encode())


def _read(path: Path) -> list[Work]:
    """Read the queue; entries that are not understood are left out."""
    try:
        lines = json.loads(read_text(path, MOST_BYTES)) if path.is_file() else []
    except (InputError, ValueError, RecursionError):
        return []
    found = []
    for line in lines if isinstance(lines, list) else []:
        with suppress(ValidationError):
            found.append(Work.model_validate(line))
    return found
