"""Features of a frozen network, computed once and cached next to the decoded images.

Features are stored as float32 bytes in the same kind of file and journal as pixels: a kill costs one batch, two
processes do not compute the same features, and `propos cache` lists and cleans them too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from propos.data.cache.builder import CacheBuilder, progress_of
from propos.data.cache.images import FORMAT, Cached, Progress, open_cache
from propos.data.cache.store import BUILDING, cache_folder, discard, locked, mark_used, no_cache
from propos.data.decoding import decode
from propos.data.decoding.worker import Decoded
from propos.data.files.entry import Skipped
from propos.data.source import CHUNK, Files, Source, readable

VERSION = 2  # of how a network sees images

See = Callable[[Int[np.ndarray, " B"]], Float[np.ndarray, "B F"]]  # the features of the images at these positions


@dataclass(frozen=True)
class Features:
    """A network's features of the images that could be read, and the others."""

    rows: See  # positions count the images that could be read
    skipped: list[Skipped]


def features_key(source: Source, network: str) -> str:
    """Return the name of the cache of a network's features of these images."""
    shape = f"{source.height} {source.channels}" + ("" if source.frames is None else " shaped")
    first = f"propos features {VERSION} {FORMAT} {decode.VERSION} {network} {shape}\n"
    digest = hashlib.blake2b(first.encode(), digest_size=16)
    if isinstance(source, Files):
        digest.update(source.entries.identity.encode())
    else:
        for start in range(0, len(source), CHUNK):
            digest.update(source.batch(np.arange(start, min(start + CHUNK, len(source)))).tobytes())
    return digest.hexdigest()


def cached_features(
    source: Source, network: str, width: int, batches: list[Int[np.ndarray, " B"]], see: See, progress: Progress
) -> Features:
    """Return a network's features of images; those that are not cached are computed, a batch at a time.

    Images that turn out to be damaged are left out. Where nothing can be cached the features stay in memory.
    """
    if no_cache() is not None:
        return _in_memory(source, batches, see, progress)
    key = features_key(source, network)
    complete = cache_folder() / key
    building = complete.with_name(key + BUILDING)
    opened = _opened(complete, source, width)
    if opened is None:
        with locked(key, waiting=lambda: progress(progress_of(building)[2], len(source))):
            opened = _opened(complete, source, width)
            if opened is None:
                discard(complete)  # it is damaged, if it is there at all
                _compute(
                    CacheBuilder(building, (len(source), 1, width, 4), source.name), source, batches, see, progress
                )
                opened = _opened(complete, source, width)
    assert opened is not None
    mark_used(complete)
    kept = opened

    def read(positions: Int[np.ndarray, " B"]) -> Float[np.ndarray, "B F"]:
        rows = kept.images[positions]
        kept.checks.check_all(positions.tolist(), rows)
        return rows.reshape(len(positions), width * 4).view(np.float32)

    return Features(read, kept.skipped)


def features_cached(source: Source, network: str, width: int) -> bool:
    """Return whether a network's features of all images of a source are cached."""
    return no_cache() is None and _opened(cache_folder() / features_key(source, network), source, width) is not None


def store_features(
    source: Source, network: str, width: int, computed: Iterable[tuple[Float[np.ndarray, "b F"], dict[int, str]]]
) -> None:
    """Write features that were computed elsewhere into the cache, batch by batch, with the images that failed.

    If another process writes the same ones, nothing is written.
    """
    key = features_key(source, network)
    complete = cache_folder() / key
    with suppress(BlockingIOError), locked(key):
        discard(complete)
        discard(complete.with_name(key + BUILDING))
        unfinished = CacheBuilder(complete.with_name(key + BUILDING), (len(source), 1, width, 4), source.name)
        try:
            for rows, failed in computed:
                _append(unfinished, rows, failed)
            _finish(unfinished, source)
        finally:
            unfinished.close()


def discard_features(source: Source, network: str) -> None:
    """Remove the cached features of a source."""
    discard(cache_folder() / features_key(source, network))


def _opened(complete: Path, source: Source, width: int) -> Cached | None:
    return open_cache(complete, source.image_names(), (1, width, 4))


def _in_memory(source: Source, batches: list[Int[np.ndarray, " B"]], see: See, progress: Progress) -> Features:
    parts: list[Float[np.ndarray, "b F"]] = []
    skipped: list[Skipped] = []
    for positions in batches:
        rows, failed = _seen(see, positions, source)
        parts.append(rows)
        names = source.image_names() if failed else ()
        skipped += [Skipped(names[positions[place]], reason) for place, reason in failed.items()]
        progress(int(positions[-1]) + 1, len(source))
    table = np.concatenate(parts)
    return Features(lambda positions: table[positions], skipped)


def _seen(
    see: See, positions: Int[np.ndarray, " B"], source: Source
) -> tuple[Float[np.ndarray, "b F"], dict[int, str]]:
    """Return the features of the images that can be read, and why others cannot, by their place in the batch."""
    rows = np.ascontiguousarray(see(positions), np.float32)
    good = readable(source, positions)
    if good.all():
        return rows, {}
    names, reasons = source.image_names(), {skipped.path: skipped.reason for skipped in source.skipped}
    return rows[good], {int(place): reasons[names[positions[place]]] for place in np.flatnonzero(~good)}


def _compute(
    unfinished: CacheBuilder, source: Source, batches: list[Int[np.ndarray, " B"]], see: See, progress: Progress
) -> None:
    try:
        progress(unfinished.seen, len(source))
        for positions in batches:
            if positions[0] < unfinished.seen:
                continue  # a batch is written whole or not at all
            _append(unfinished, *_seen(see, positions, source))
            progress(unfinished.seen, len(source))
        _finish(unfinished, source)
    finally:
        unfinished.close()


def _append(unfinished: CacheBuilder, rows: Float[np.ndarray, "b F"], failed: dict[int, str]) -> None:
    frames = [(1, rows.shape[1])] * len(rows)
    unfinished.append(Decoded(rows.view(np.uint8).reshape(-1), frames, 4, [1.0] * len(rows), failed))


def _finish(unfinished: CacheBuilder, source: Source) -> None:
    names = source.image_names() if unfinished.failed else ()
    skipped = [[names[position], reason] for position, reason in unfinished.failed.items()]
    images = len(unfinished.aspects)
    meta = {"format": FORMAT, "source": source.name, "images": images, "tried": len(source), "skipped": skipped}
    unfinished.finish(unfinished.folder.with_name(unfinished.folder.name.removesuffix(BUILDING)), meta)
