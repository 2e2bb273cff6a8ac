"""Whether the decoded images of a folder may be kept on the disk."""

from __future__ import annotations

import os
import re
import shutil

from propos.common.errors import InputError
from propos.data.cache.images import cache_key, expected_bytes
from propos.data.cache.store import BUILDING, cache_folder, no_cache
from propos.data.files.images import Images

FREE_SHARE = 0.5  # of the free disk space, a cache takes at most
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def is_cached(images: Images, side: int, channels: int, shaped: bool = False) -> bool:
    """Return whether the cache of these images exists."""
    try:
        return (cache_folder() / cache_key(images, side, channels, shaped)).is_dir()
    except (InputError, PermissionError):
        return False


def refusal(images: Images, side: int, channels: int, shaped: bool = False) -> str | None:
    """Return why these images cannot be cached, or are too many; None if they can.

    The limit is PROPOS_CACHE_LIMIT (for example 20GB), else half of the free disk space; the space of an interrupted
    build counts as free.
    """
    needed = expected_bytes(len(images), side, channels, shaped)
    given = os.environ.get("PROPOS_CACHE_LIMIT")
    if given and needed > _parsed(given):
        return _too_many(needed, "PROPOS_CACHE_LIMIT", _parsed(given))
    if (why := no_cache()) is not None or given:
        return why
    room = FREE_SHARE * (_free() + _built(cache_key(images, side, channels, shaped)))
    return _too_many(needed, "half of the free disk space", room) if needed > room else None


def _too_many(needed: int, bound: str, limit: float) -> str:
    return f"the decoded images would take {needed / 1e9:,.1f} GB, more than {bound} ({limit / 1e9:,.1f} GB)"


def _parsed(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", text.strip().upper())
    if match is None:
        raise InputError(f"PROPOS_CACHE_LIMIT={text}: write it as 500MB or 20GB")
    return float(match[1]) * _UNITS[match[2]]


def _free() -> int:
    return shutil.disk_usage(cache_folder()).free


def _built(key: str) -> int:
    folder = cache_folder() / f"{key}{BUILDING}"
    return sum(file.stat().st_size for file in folder.iterdir()) if folder.is_dir() else 0
