"""A run folder is made, and trained into, by one process at a time; whoever only reads it needs no lock."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout, UnixFileLock

from propos.common.errors import InputError

LOCK = ".lock"


class Held(InputError):  # noqa: N818 - reads as what is the matter
    """Another process trains into the folder."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Be the only one to train into a folder, which is made if need be, or say who is.

    The system lets go of the lock of a process that dies. A folder that was made and stayed empty goes again.
    """
    path = folder / LOCK
    made = make_folder(folder)
    lock = _acquired(path)
    try:
        with suppress(OSError):  # a full disk is met by what matters more; Windows lets nobody write what is locked
            path.write_text(json.dumps(_this_process()), encoding="utf-8")
        yield
    finally:
        _release(lock, path)
        if made:
            remove_if_empty(folder)


@contextmanager
def waited_for(path: Path) -> Iterator[None]:
    """Be the only one to hold a lock for a moment, as soon as nobody else does; its folder has to be there."""
    folder = path.parent
    holds_files = any(folder.iterdir())  # raises where there is no folder: the lock would make one
    lock = FileLock(path)
    lock.acquire()
    try:
        yield
    finally:
        _release(lock, path)
        if holds_files:
            remove_if_empty(folder)  # it was taken away in this very moment, and the lock made it again


def make_folder(path: Path) -> bool:
    """Make the folder of a run to be, and return whether it was not there."""
    try:
        path.mkdir(parents=True)
    except OSError as error:
        if isinstance(error, FileExistsError) and path.is_dir():
            return False
        raise InputError(f"{path}: the folder cannot be made: {error.strerror}; choose another --out") from None
    return True


def remove_if_empty(folder: Path) -> None:
    """Remove a folder in which nothing is."""
    with suppress(OSError):
        folder.rmdir()


def refuse_if_held(folder: Path) -> None:
    """Refuse a folder that another process trains into, before any work is done for it."""
    path = folder / LOCK
    if path.is_file():
        _release(_acquired(path), path)


def _acquired(path: Path) -> FileLock:
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise Held(f"{path.parent}: {_holder(path)} trains into it; stop that first or let it finish") from None
    return lock


def _release(lock: FileLock, path: Path) -> None:
    # While it is still ours: who takes the file that goes here looks for a new one. Elsewhere the lock does it itself.
    if isinstance(lock, UnixFileLock):
        with suppress(OSError):
            path.unlink()
    lock.release()


def _this_process() -> dict[str, str | int]:
    now = datetime.now().astimezone()
    return {"process": os.getpid(), "host": socket.gethostname(), "since": now.isoformat(sep=" ", timespec="minutes")}


def _holder(path: Path) -> str:
    """Say who holds a lock, as far as it is known."""
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        return f"process {holder['process']} on {holder['host']}, since {holder['since']},"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
