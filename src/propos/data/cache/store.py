"""The folder of all caches: its path, locks, listing and cleaning."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout, UnixFileLock

from propos.common.errors import InputError
from propos.data.cache.builder import MARK, META, is_marked, mark, progress_of
from propos.data.files.entry import reason_for
from propos.data.files.home import expanded, home

BUILDING = ".building"
LOCK = ".lock"
_TRASH = ".trash-"
_DAY = 86_400.0
_WAIT = 0.2  # seconds between looks at a lock


@dataclass(frozen=True)
class CacheInfo:
    """One cache, as `list_caches` shows it."""

    key: str
    source: str
    images: int
    bytes: int
    last_used: float  # seconds since 1970
    complete: bool


def cache_folder() -> Path:
    """Return the folder of all caches: PROPOS_CACHE, else propos in XDG_CACHE_HOME or ~/.cache."""
    own = os.environ.get("PROPOS_CACHE")
    if own:
        return expanded(own)
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if shared.is_absolute():
        return shared / "propos"
    where = home()
    if where is None:
        raise InputError("there is no home folder to keep decoded images in: name a folder in PROPOS_CACHE")
    return where / ".cache" / "propos"


def no_cache() -> str | None:
    """Return why nothing can be cached; None if it can."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return None
    except InputError as error:
        return str(error)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return None  # a full disk is reported later, with numbers
        return f"{folder} cannot be written to ({reason_for(error)}): name another folder in PROPOS_CACHE"


@contextlib.contextmanager
def locked(key: str, waiting: Callable[[], object] | None = None) -> Iterator[None]:
    """Be the only one, among all processes, to build or remove a cache; without `waiting`, do not wait.

    The system lets go of the lock of a process that dies.
    """
    path = cache_folder() / f"{key}{LOCK}"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    while not _acquired(lock):
        if waiting is None:
            raise BlockingIOError(errno.EAGAIN, "another process builds or removes this cache", str(path))
        waiting()
        time.sleep(_WAIT)
    try:
        yield
    finally:
        # While it is still ours: who waits for it looks for a new one. Elsewhere the lock removes its file itself.
        if isinstance(lock, UnixFileLock):
            path.unlink(missing_ok=True)
        lock.release()


def list_caches() -> list[CacheInfo]:
    """List the caches, finished and not, the last used first; what does not carry our mark is none."""
    folder = cache_folder()
    infos = [_info(path) for path in folder.iterdir() if _is_cache(path)] if folder.is_dir() else []
    return sorted((info for info in infos if info), key=lambda info: -info.last_used)


def clean_caches(older_than_days: float | None = None) -> list[CacheInfo]:
    """Remove all caches, or those not used for `days`; return the removed ones.

    A cache that another process is building is kept; processes that read a removed cache can continue to read it.
    """
    removed = []
    for info in list_caches():
        if older_than_days is not None and time.time() - info.last_used <= older_than_days * _DAY:
            continue
        try:
            with locked(info.key):
                discard(cache_folder() / (info.key if info.complete else info.key + BUILDING))
                removed.append(info)
        except BlockingIOError:
            continue
    if cache_folder().is_dir():
        for leftover in cache_folder().glob(f"{_TRASH}*"):
            _remove(leftover)
    return removed


def discard(folder: Path) -> None:
    """Remove a folder atomically: rename it first."""
    aside = folder.with_name(f"{_TRASH}{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(aside)
        _remove(aside)


def _remove(aside: Path) -> None:
    """Remove a cache put aside, its mark last: what a kill leaves is still known as ours."""
    if not is_marked(aside):
        return
    with contextlib.suppress(OSError):
        for file in aside.iterdir():
            if file.name != MARK:
                file.unlink()
    shutil.rmtree(aside, ignore_errors=True)


def mark_used(folder: Path) -> None:
    """Note that a cache is ours and in use now."""
    with contextlib.suppress(OSError):  # a cache one may only read is still good
        mark(folder)
        os.utime(folder / META)


def _acquired(lock: BaseFileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True


def _is_cache(path: Path) -> bool:
    return is_marked(path) and not path.is_symlink() and not path.name.startswith(".")


def _info(path: Path) -> CacheInfo | None:
    """Describe a cache; nothing when it vanishes meanwhile."""
    try:
        size = sum(file.stat().st_size for file in path.iterdir())
        if path.name.endswith(BUILDING):
            source, images, _ = progress_of(path)
            used = max((file.stat().st_mtime for file in path.iterdir()), default=path.stat().st_mtime)
            return CacheInfo(path.name.removesuffix(BUILDING), source, images, size, used, complete=False)
        used = (path / META).stat().st_mtime
        if not (path / META).is_file():
            raise ValueError("not a file")
        meta = json.loads((path / META).read_bytes())
        return CacheInfo(path.name, str(meta["source"]), int(meta["images"]), size, used, complete=True)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return CacheInfo(path.name, "damaged", 0, 0, 0.0, complete=True)
