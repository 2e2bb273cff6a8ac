"""Exact cosine neighbours compared with faiss's, and the time and memory for some of a million vectors, on one core."""

from __future__ import annotations

import argparse
import time

import faiss
import torch
import torch.nn.functional as F

from propos.clustering import nearest_in_blocks, nearest_neighbours
from side_by_side import compare, peak_memory, verdict

NEAREST = 50
DIMENSION = 256
TARGET = 1.2  # times faiss's, which keeps no more than the best while it multiplies
ROOM = 100  # MB in addition to the vectors


def unit_vectors(count: int) -> torch.Tensor:
    """Return vectors around a hundred directions, as embeddings of clusters lie."""
    draw = torch.Generator().manual_seed(0)
    centres = torch.randn(100, DIMENSION, generator=draw)
    which = torch.randint(100, (count,), generator=draw)
    return F.normalize(centres[which] + 0.7 * torch.randn(count, DIMENSION, generator=draw), dim=1)


def among_many(count: int, queries: int) -> None:
    """Look up some of many vectors; print the time, and the memory in addition to the vectors."""
    draw, bank = torch.Generator().manual_seed(0), torch.empty(count, DIMENSION)
    for part in bank.split(2**14):
        part.copy_(F.normalize(torch.randn(part.shape, generator=draw), dim=1))
    begin = time.process_time()
    more = peak_memory(lambda: [*nearest_in_blocks(bank[:queries], bank, NEAREST, first=0)])
    each = (time.process_time() - begin) / queries
    what = f"{queries:,} of {count:,} × {DIMENSION}, k = {NEAREST}"
    print(f"{what}: {1000 * each:.1f} ms of the processor each, {each * count / 3600:.1f} h for all")
    if more is not None:
        held = f"{more:,.0f} MB in addition to the vectors' {bank.nbytes / 2**20:,.0f}"
        print(f"{'ok    ' if more <= ROOM else 'missed'} {what}: {held}, target {ROOM}")


def main() -> None:
    """Compare at a size that fits, then look at memory at ImageNet's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--many", type=int, default=0, help="look up some of so many, as 1281167")
    parser.add_argument("--queries", type=int, default=2_000, help="how many of them")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    points = unit_vectors(arguments.images)
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(points.numpy())
    theirs = torch.from_numpy(index.search(points.numpy(), NEAREST + 1)[1][:, 1:])  # each image is its own nearest
    ours = nearest_neighbours(points, NEAREST)
    print(f"the same neighbours as faiss's: {(ours == theirs).float().mean():.5f} of {ours.numel():,}")
    works = {
        "ours": lambda: nearest_neighbours(points, NEAREST),
        "faiss": lambda: index.search(points.numpy(), NEAREST + 1),
    }
    found = compare(f"{arguments.images:,} × {DIMENSION}, k = {NEAREST}", works, arguments.rounds)
    verdict(found, f"at most {TARGET}", found.processor_ratio <= TARGET)
    if arguments.many:
        among_many(arguments.many, arguments.queries)


if __name__ == "__main__":
    main()
