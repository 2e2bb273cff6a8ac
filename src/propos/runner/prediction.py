"""Predictions for many images, in blocks that all processes share.

A block is stored next to the output as soon as it is predicted. A command that is started again, by a person or by
torchrun, reads the stored blocks and predicts the others. The first process then writes the table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import torch

from propos import __version__
from propos.clustering import spans
from propos.common.errors import InputError, Interrupted, RunFailed
from propos.common.progress import Progress
from propos.data import Skipped, Source, fingerprint
from propos.distributed import (
    any_process,
    bytes_on_first,
    local_rank,
    rank,
    receive_message,
    report_ready,
    send_message,
    share,
    shares,
    wait_for_all,
    wait_until_all_ready,
    world_size,
)
from propos.evaluation.rejection import distance_limits
from propos.runner.ranks import share_index
from propos.runs import Block, ImageTable, Run, StoredBlocks
from propos.training import Model
from propos.training.embedding import embedding_batch_size


def write_predictions(model: Model, source: Source, output: Path, key: str, progress: Progress) -> int:
    """Predict all images; the first process writes their table and returns the number of rows, the others return 0.

    Images that other processes could not read are added to `source.skipped`.
    """
    blocks = list(spans(len(source), embedding_batch_size(model.config)))
    stored = _prepare(output, key)
    with _kept(stored, blocks):
        rows = stored.rows_written() if rank() == 0 else None
        if not any_process(rows is not None)[0]:
            _predict_missing(model, source, blocks, stored, progress)
            wait_for_all()
            rows = _write_table(source, len(blocks), stored)
        wait_for_all()  # the table is complete
    if local_rank() == 0:
        stored.remove()
    return rows or 0


def rejecting_model(run: Run, model: Model, share: float | None) -> Model:
    """Return a model that rejects images farther out than a share of the run's own; None: it rejects none."""
    if share is None:
        return model
    table = run.corrected.table
    return replace(model, limits=distance_limits(table.cluster, table.distance, model.ids, share))


def announced_predictions(what: str) -> str | None:
    """Wait until the first process has opened the images, and return the key that it announces; it gets None."""
    if rank() == 0:
        return None
    key = receive_message()
    share_index(what)
    return key


def agree_on_predictions(model: Model, source: Source, what: str, announced: str | None) -> str:
    """Return the key of the predictions, which the first process announces; the others must have the same images."""
    key = prediction_key(model, source)
    if world_size() == 1:
        return key
    if rank() == 0:
        send_message(key)
        share_index(what)
        wait_until_all_ready()
    elif announced == key:
        report_ready()
    else:
        raise InputError(f"{source.name}: its images, or the run, differ from those on the first process's machine")
    return key


def prediction_key(model: Model, source: Source) -> str:
    """Return a hash of everything that predictions depend on."""
    facts = [__version__, model.config.to_yaml(), model.encoder.device.type, fingerprint(source), source.name]
    clusters = [model.ids.tolist(), None if model.names is None else sorted(model.names.items()), model.regrouped]
    if model.limits is not None:
        facts.append(model.limits.tobytes().hex())
    digest = hashlib.blake2b(json.dumps([facts, clusters]).encode(), digest_size=16)
    for tensor in (*model.method.state_dict().values(), model.prototypes):
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _prepare(output: Path, key: str) -> StoredBlocks:
    """Return the stored blocks, without those of an earlier command that predicted something else."""
    stored = StoredBlocks(output)
    if rank() == 0:
        stored.prepare(key)
    wait_for_all()  # machines may share the folder
    if local_rank() == 0:
        stored.prepare(key)
    wait_for_all()
    return stored


@contextmanager
def _kept(stored: StoredBlocks, blocks: list[slice]) -> Iterator[None]:
    """Say on the first process how much is kept when the command stops; remove the folder if nothing is."""
    try:
        yield
    except InputError:
        if rank() == 0:
            stored.remove()
        raise
    except (KeyboardInterrupt, RunFailed) as error:
        done = _images(blocks, (number for number in range(len(blocks)) if number in stored))
        if rank() > 0 or done == 0:
            if rank() == 0:
                stored.remove()
            raise
        kept = f"{done:,} of {blocks[-1].stop:,} images are predicted and kept; the same command continues"
        if isinstance(error, RunFailed):
            raise RunFailed(f"{error}; {kept}", error.code) from None
        raise Interrupted(f"stopped; {kept}") from None


def _predict_missing(
    model: Model, source: Source, blocks: list[slice], stored: StoredBlocks, progress: Progress
) -> None:
    """Predict this process's blocks that are not stored yet; consecutive ones are read ahead together."""
    own = range(len(blocks))[share(len(blocks))]
    missing = [number for number in own if number not in stored]
    done, total = _images(blocks, own) - _images(blocks, missing), _images(blocks, own)
    for _, group in groupby(enumerate(missing), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in group]
        which = slice(blocks[numbers[0]].start, blocks[numbers[-1]].stop)
        for number, table in zip(numbers, model.tabulate(source, which), strict=True):
            stored[number] = Block(table, _skipped(source, blocks[number], table)).to_bytes()
            done += _images(blocks, [number])
            progress(done, total)


def _images(blocks: list[slice], numbers: Iterable[int]) -> int:
    """Return the number of images in some blocks."""
    return sum(blocks[number].stop - blocks[number].start for number in numbers)


def _skipped(source: Source, where: slice, table: ImageTable) -> list[tuple[str, str]]:
    """Return the images of a block that could not be read, and why."""
    if len(table.images) == where.stop - where.start:
        return []
    every, reasons = source.image_names(), {each.path: each.reason for each in source.skipped}
    names = {every[position] for position in range(where.start, where.stop)}.difference(table.images)
    return [(name, reasons[name]) for name in sorted(names)]


def _write_table(source: Source, blocks: int, stored: StoredBlocks) -> int:
    """Write the table on the first process and return its number of rows; the others send it their blocks."""
    if rank() == 0:
        return stored.write_table(_tables(source, blocks, stored))
    for _ in _collected(blocks, stored):
        pass
    return 0


def _collected(blocks: int, stored: StoredBlocks) -> Iterator[bytes]:
    """Yield all blocks in order on the first process; the others send their own and yield empty ones."""
    for owner, own in enumerate(shares(blocks)):
        for number in range(blocks)[own]:
            yield bytes_on_first(stored[number] if rank() == owner else None, owner)


def _tables(source: Source, blocks: int, stored: StoredBlocks) -> Iterator[ImageTable]:
    """Yield the tables of all blocks that have rows, and list the images that could not be read."""
    known, rows = {each.path for each in source.skipped}, 0
    for content in _collected(blocks, stored):
        block = Block.from_bytes(content)
        source.skipped += [Skipped(*each) for each in block.skipped if each[0] not in known]
        rows += len(block.table.images)
        if block.table.images:
            yield block.table
    if rows == 0:
        first = source.skipped[0]
        raise InputError(f"{source.name}: no image in it can be read: {first.path} ({first.reason})")
