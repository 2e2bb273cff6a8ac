"""Features that several processes compute together, each those of its share of the images."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float, Int

from propos.common.progress import Progress
from propos.data import (
    Features,
    Selection,
    Source,
    cached_features,
    discard_features,
    features_cached,
    no_cache,
    store_features,
)
from propos.data.features import See
from propos.distributed import (
    all_gather_texts,
    any_process,
    broadcast,
    local_rank,
    rank,
    shares,
    wait_for_all,
    world_size,
)

Batches = list[Int[np.ndarray, " B"]]


def shared_features(
    source: Source, network: str, width: int, batches: Batches, see: See, progress: Progress
) -> Features:
    """Return a network's features of all images; each process computes its share of the batches.

    A share is cached as it is computed, so that a restart continues it. The first process of each machine then writes
    all shares into one cache: machines need not have a common folder. The batches are those of a single process, and
    so are the bits.
    """
    if world_size() == 1 or any_process(no_cache() is not None)[0]:
        return cached_features(source, network, width, batches, see, progress)
    if any_process(not features_cached(source, network, width))[0]:
        _compute(source, network, width, batches, see, progress)
    return cached_features(source, network, width, batches, see, progress)


def _compute(source: Source, network: str, width: int, batches: Batches, see: See, progress: Progress) -> None:
    own = batches[shares(len(batches))[rank()]]
    first = int(own[0][0]) if own else 0
    part = Selection(source, np.concatenate([np.arange(0), *own]))
    found = None
    if own:
        local = [positions - first for positions in own]
        found = cached_features(part, network, width, local, lambda positions: see(positions + first), progress)
    wait_for_all()
    failed = [] if found is None else [(skipped.path, skipped.reason) for skipped in found.skipped]
    reasons = dict(pair for text in all_gather_texts(json.dumps(failed)) for pair in json.loads(text))
    computed = _exchanged(source, width, batches, reasons, found)
    if local_rank() == 0:
        store_features(source, network, width, computed)
    for _ in computed:  # all processes take part in every exchange
        pass
    any_process(False)  # every machine has written them
    if own:
        discard_features(part, network)


def _exchanged(
    source: Source, width: int, batches: Batches, reasons: dict[str, str], found: Features | None
) -> Iterator[tuple[Float[np.ndarray, "b F"], dict[int, str]]]:
    """Yield the features of every batch on every process, and the images of it that could not be read."""
    names = source.image_names() if reasons else ()
    good = (
        np.array([name not in reasons for name in names], dtype=bool) if reasons else np.ones(len(source), dtype=bool)
    )
    places = np.cumsum(good) - 1
    owned = shares(len(batches))
    own = batches[owned[rank()]]
    before = int(good[: own[0][0]].sum()) if own else 0  # images of earlier shares that could be read
    for number, positions in enumerate(batches):
        owner = next(process for process, span in enumerate(owned) if number < span.stop)
        kept = positions[good[positions]]
        rows = torch.empty((len(kept), width))
        if owner == rank() and found is not None and len(kept):
            rows = torch.from_numpy(np.ascontiguousarray(found.rows(places[kept] - before)))
        failed = {int(at): reasons[names[positions[at]]] for at in np.flatnonzero(~good[positions])}
        yield broadcast(rows, owner).numpy(), failed
