"""Locks of run folders: one process at a time creates a folder or trains into it; reading needs no lock."""

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


class FolderLocked(InputError):  # noqa: N818 - reads as what is the matter
    """Another process trains into the folder."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, or raise FolderLocked naming the process that holds it; a missing folder is created.

    The system releases the lock of a process that dies. A folder that was created here and stayed empty is removed.
    """
    path = folder / LOCK
    made = make_folder(folder)
    lock = _acquired(path)
    try:
        with suppress(
            OSError
        ):  # a full disk fails later, at more important files; Windows allows no writing to a locked file
            path.write_text(json.dumps(_this_process()), encoding="utf-8")
        yield
    finally:
        _release(lock, path)
        if made:
            remove_if_empty(folder)


@contextmanager
def wait_for_lock(path: Path) -> Iterator[None]:
    """Wait for a lock and hold it; its folder must exist."""
    folder = path.parent
    holds_files = any(folder.iterdir())  # raises if the folder is missing: the lock would create it
    lock = FileLock(path)
    lock.acquire()
    try:
        yield
    finally:
        _release(lock, path)
        if holds_files:
            remove_if_empty(folder)  # the folder was removed in this moment, and the lock created it again


def make_folder(path: Path) -> bool:
    """Create the folder of a run, and return whether it is new."""
    try:
        path.mkdir(parents=True)
    except OSError as error:
        if isinstance(error, FileExistsError) and path.is_dir():
            return False
        raise InputError(f"{path}: cannot create the folder: {error.strerror}: choose another --out") from None
    return True


def remove_if_empty(folder: Path) -> None:
    """Remove a folder if it is empty."""
    with suppress(OSError):
        folder.rmdir()


def refuse_if_locked(folder: Path) -> None:
    """Raise FolderLocked if another process trains into a folder."""
    path = folder / LOCK
    if path.is_file():
        _release(_acquired(path), path)


def _acquired(path: Path) -> FileLock:
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise FolderLocked(
            f"{path.parent}: {_holder(path)} is training into this folder: stop it or wait until it finishes"
        ) from None
    return lock


def _release(lock: FileLock, path: Path) -> None:
    # Removed while it is still locked: a process that waits for this file then looks for a new one.
    if isinstance(lock, UnixFileLock):
        with suppress(OSError):
            path.unlink()
    lock.release()


def _this_process() -> dict[str, str | int]:
    now = datetime.now().astimezone()
    return {"process": os.getpid(), "host": socket.gethostname(), "since": now.isoformat(sep=" ", timespec="minutes")}


def _holder(path: Path) -> str:
    """Return the process that holds a lock, in words, as far as it is known."""
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        return f"process {holder['process']} on {holder['host']}, since {holder['since']},"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
