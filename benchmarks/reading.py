"""Measure how many images a second are read, and how long a training step waits for its images.

Images of a kept folder, squares and photographs in their shape, are read by one thread and by several that share each
batch. A card needs as many images as it trains (docs/notebook/distributed.md); each card has a process and a reader.

The second table compares reading on demand with reading ahead by a thread.

A step is a pause of the length given, in which the host has nothing to do, as with a GPU. Both ways take turns, epoch
by epoch, on the same source; what is shown is the median wait of a step.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import torch

from folders import generated, own_cache
from propos.cli.memory import keep_freed_memory
from propos.data import Source, closing_source, from_array, open_folder, open_streamed, prefetch
from propos.data.decoding.pool import cores
from propos.training.prefetch import read, reading_ahead

NEEDED = 938  # images a second that a card trains: an estimate for ResNet-50 at 224 px on an A100
CPU = torch.device("cpu")


def images_per_second(source: Source, batch: int, threads: int, rounds: int) -> float:
    """Return how many images a second threads read that share each batch: the median over rounds."""
    order = np.random.default_rng(0).permutation(len(source))
    batches = order[: len(order) // batch * batch].reshape(-1, batch)
    found = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(rounds + 1):  # in the first, checksums are compared
            begin = time.perf_counter()
            for positions in batches:
                list(pool.map(source.batch, np.array_split(positions, threads)))
            found.append(batches.size / (time.perf_counter() - begin))
    return float(np.median(found[1:]))


def show_speeds(side: int, count: int, batch: int, rounds: int) -> None:
    """Print images a second against threads, and what cards need."""
    numbers = sorted({1, 2, cores()})
    print(f"images/s at {side} px; one card needs {NEEDED:,}, eight cards {8 * NEEDED:,}\n")
    print(f"| source | {' | '.join(f'threads: {number}' for number in numbers)} |\n|---|{'---|' * len(numbers)}")
    with tempfile.TemporaryDirectory() as folder, own_cache(Path(folder)):
        photos = generated(Path(folder) / "photos", count, 3 * side // 2, side)
        for name, shaped in (("squares", False), ("photographs in their shape", True)):
            source = open_folder(photos, side, shaped=shaped)
            speeds = [images_per_second(source, batch, number, rounds) for number in numbers]
            print(f"| {name} | {' | '.join(f'{speed:,.0f}' for speed in speeds)} |", flush=True)
    print()


def waits(source: Source, batch: int, pause: float, ahead: bool) -> list[float]:
    """Return the seconds that each step of an epoch waits for its batch."""
    order = np.random.default_rng(0).permutation(len(source))
    batches = order[: len(order) // batch * batch].reshape(-1, batch)
    found = []
    with reading_ahead(source, CPU) if ahead else nullcontext(source) as used:
        prefetch(used, batches)
        time.sleep(pause)
        for positions in batches:
            begin = time.perf_counter()
            read(used, positions, CPU)
            found.append(time.perf_counter() - begin)
            time.sleep(pause)
    return found


@contextmanager
def sources(side: int, count: int) -> Iterator[dict[str, Source]]:
    """Give the same number of images as an array, as a folder that is kept decoded, and as one that is streamed."""
    pixels = np.random.default_rng(0).integers(256, size=(count, side, side, 3), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as folder, own_cache(Path(folder)):
        photos = generated(Path(folder) / "photos", count, side, side)
        kept, streamed = open_folder(photos, side), open_streamed(photos, side)
        with closing_source(streamed):
            yield {"array": from_array(pixels), "kept folder": kept, "streamed folder": streamed}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--pause", type=float, default=0.25, help="seconds of a step")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    keep_freed_memory()  # as every command does
    show_speeds(224, given.images, given.batch, given.rounds)
    print(f"batches of {given.batch} at {given.side} px, steps of {1000 * given.pause:.0f} ms\n")
    print("| source | wait a step, read when asked for | read ahead |\n|---|---|---|")
    with sources(given.side, given.images) as every:
        for name, source in every.items():
            found: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(given.rounds):
                for ahead, times in found.items():
                    times += waits(source, given.batch, given.pause, ahead)
            before, after = (1000 * float(np.median(found[ahead])) for ahead in (False, True))
            print(f"| {name} | {before:.1f} ms | {after:.2f} ms |", flush=True)


if __name__ == "__main__":
    main()
