"""Exact cosine neighbours beside faiss's, and what a block of a million vectors takes in memory, on one core."""

from __future__ import annotations

import argparse
import resource

import faiss
import torch
import torch.nn.functional as F

from propos.clustering import nearest_in_blocks, nearest_neighbours
from side_by_side import compare, verdict

NEAREST = 50
DIMENSION = 256
TARGET = 2.0  # times faiss's, which keeps no more than the best while it multiplies


def unit_vectors(count: int) -> torch.Tensor:
    """Return vectors around a hundred directions, as embeddings of clusters lie."""
    draw = torch.Generator().manual_seed(0)
    centres = torch.randn(100, DIMENSION, generator=draw)
    which = torch.randint(100, (count,), generator=draw)
    return F.normalize(centres[which] + 0.7 * torch.randn(count, DIMENSION, generator=draw), dim=1)


def peak_megabytes() -> float:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Compare at a size that fits, then look at memory at ImageNet's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--many", type=int, default=0, help="look at memory with so many, as 1,281,167")
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
        bank = F.normalize(torch.randn(arguments.many, DIMENSION, generator=torch.Generator().manual_seed(0)), dim=1)
        before = peak_megabytes()
        next(nearest_in_blocks(bank, bank, NEAREST, first=0))
        more = peak_megabytes() - before
        print(f"{arguments.many:,} × {DIMENSION}: {more:,.0f} MB beside the vectors' own {before:,.0f}")


if __name__ == "__main__":
    main()
