"""Images decoded once: built on all cores, kept on the disk, read from there.

A cache is found by the images' identity, a hash of every name, size, time of change and digest (see `content.edges`),
together with the side, the channels and the version of decoding. A changed, added or deleted file therefore means
another cache; a folder that was only moved keeps its own. Images that could not be decoded are part of what is kept.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from propos.data.cache.builder import (
    ASPECTS,
    CHECKSUMS,
    FRAMES,
    IMAGES,
    META,
    CacheBuilder,
    is_failures,
    opened_images,
    progress_of,
)
from propos.data.cache.checksums import Checksums
from propos.data.cache.store import BUILDING, cache_folder, discard, locked, mark_used
from propos.data.decoding import decode
from propos.data.decoding.pool import DecodePool
from propos.data.files.entry import Skipped
from propos.data.files.images import Images
from propos.data.files.names import escape_name
from propos.runs.rows import ArrayFile

FORMAT = 1
JOB = 32  # images a process decodes before it reports; all that a kill can lose, a process

Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class Cached:
    """The images of a finished cache, and those that could not be decoded.

    Images are squares, or, with frames, of varying numbers of rows and columns, one after another.
    """

    images: ArrayFile  # (N, side, side, C), or all bytes
    aspects: Float[np.ndarray, " N"]  # true width/height
    skipped: list[Skipped]
    checks: Checksums  # for who reads them
    frames: Int[np.ndarray, "N 2"] | None = None


class Layout(NamedTuple):
    """The layout of decoded images: squares of this side, or each in its shape with this shorter side."""

    side: int
    channels: int
    shaped: bool = False


def cache_key(images: Images, side: int, channels: int, shaped: bool = False) -> str:
    """Return the name of the cache of these images."""
    kind = f"{side} {channels}" + (" shaped" if shaped else "")
    text = f"propos {FORMAT} {decode.VERSION} {kind}\n{images.identity}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def cached(
    entries: Images,
    root: Path,
    layout: Layout,
    progress: Progress | None = None,
    workers: int | None = None,
) -> Cached:
    """Open the cache of these images, as squares or in their shape; build it first if it is missing.

    If another process builds the same cache, wait for it and show its progress. An interrupted build is resumed. A full
    disk raises OSError; the part that was built is kept.
    """
    key = cache_key(entries, *layout)
    complete = cache_folder() / key
    building = complete.with_name(key + BUILDING)
    report = progress or (lambda done, total: None)
    side, channels, shaped = layout
    names, shape = entries.names, (side, side, channels)
    opened = open_cache(complete, names, shape, shaped)
    if opened is None:
        with locked(key, waiting=lambda: report(progress_of(building)[2], len(entries))):
            opened = open_cache(complete, names, shape, shaped)
            if opened is None:
                discard(complete)  # it is damaged, if it is there at all
                _build(entries, root, layout, complete, report, workers)
                opened = open_cache(complete, names, shape, shaped)
    assert opened is not None
    mark_used(complete)
    return opened


def _build(
    entries: Images,
    root: Path,
    layout: Layout,
    complete: Path,
    report: Progress,
    workers: int | None,
) -> None:
    side, channels, shaped = layout
    source = escape_name(str(root.absolute()))
    unfinished = CacheBuilder(
        complete.with_name(complete.name + BUILDING), (len(entries), side, side, channels), source, shaped
    )
    try:
        rest = entries[unfinished.seen :]
        _check_space(complete.parent, expected_bytes(len(rest), side, channels, shaped))
        report(unfinished.seen, len(entries))
        jobs = (rest[start : start + JOB] for start in range(0, len(rest), JOB))
        with DecodePool(side, channels, workers, shaped=shaped) as pool:
            for decoded in pool.in_order(jobs):
                unfinished.append(decoded)
                report(unfinished.seen, len(entries))
        skipped = [[entries.names[position], reason] for position, reason in unfinished.failed.items()]
        images = len(unfinished.aspects)
        meta = {"format": FORMAT, "source": source, "images": images, "tried": len(entries), "skipped": skipped}
        unfinished.finish(complete, meta)
    finally:
        unfinished.close()


def expected_bytes(images: int, side: int, channels: int, shaped: bool) -> int:
    """Return the bytes that a number of images will take; images in their shape are assumed to be 3:2."""
    return images * side * side * channels * (3 if shaped else 2) // 2


def _check_space(folder: Path, needed: int) -> None:
    """Refuse before an hour's decoding what the disk cannot hold."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"the decoded images need {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free: "
            "make room, or name another folder in PROPOS_CACHE",
            str(folder),
        )


def open_cache(
    complete: Path, names: Sequence[str], shape: tuple[int, int, int], shaped: bool = False
) -> Cached | None:
    """Open the finished cache of images of these names and this shape; None if it is missing or damaged."""
    try:
        files = (META, ASPECTS, CHECKSUMS, IMAGES, *([FRAMES] if shaped else []))
        if not all((complete / name).is_file() for name in files):
            return None  # nor are pipes waited for
        meta = json.loads((complete / META).read_bytes())
        aspects = np.load(complete / ASPECTS, allow_pickle=False)
        checksums = np.load(complete / CHECKSUMS, allow_pickle=False)
        frames = np.load(complete / FRAMES, allow_pickle=False) if shaped else None
        if not is_failures(meta["skipped"], str):
            return None
        skipped = [Skipped(name, reason) for name, reason in meta["skipped"]]
        failed = {each.path for each in skipped}
        kept = sum(name not in failed for name in names) if failed else len(names)
        if aspects.shape != (kept,) or aspects.dtype != np.float64 or not (aspects > 0).all():
            return None
        if checksums.shape != (kept,) or checksums.dtype != np.uint32:
            return None
        if frames is None:
            images = opened_images(complete, (kept, *shape))
        elif frames.shape != (kept, 2) or frames.dtype.kind != "i" or frames.min(initial=1) < 1:
            return None
        else:
            images = opened_images(complete, (shape[2] * int(frames.prod(axis=1, dtype=np.int64).sum()),))
    except Exception:  # damaged JSON and numpy headers raise many kinds of errors
        return None
    return None if images is None else Cached(images, aspects, skipped, Checksums(complete, checksums), frames)
