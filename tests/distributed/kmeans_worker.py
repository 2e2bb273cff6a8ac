"""One of the processes of test_kmeans.py: cluster this process's part of the points and save what came out."""

import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from propos.clustering import spherical_kmeans
from propos.distributed import each_process, from_first_process, rank, sum_over_processes, world_size


def blobs(points: int = 6000, clusters: int = 8) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(clusters, 16, generator=generator)
    return centres[torch.arange(points) % clusters] + 0.6 * torch.randn(points, 16, generator=generator)


def cases() -> dict[str, tuple[torch.Tensor, dict]]:
    weights = 1.0 + torch.arange(6000) % 3
    return {
        "scouted": (blobs(), {"clusters": 8, "restarts": 3, "scout_size": 1000}),
        "whole": (blobs(1500), {"clusters": 8, "restarts": 3}),
        "every restart on all points": (blobs(), {"clusters": 8, "restarts": 2, "scout_size": None}),
        "many clusters": (blobs(), {"clusters": 50, "restarts": 1, "scout_size": 2000}),
        "weights": (blobs(), {"clusters": 8, "restarts": 2, "scout_size": None, "weights": weights}),
        "identical points": (torch.ones(6000, 4), {"clusters": 5, "restarts": 2}),
        "empty at first": (blobs(), {"clusters": 3, "restarts": 0, "scout_size": 500, "previous": torch.ones(3, 16)}),
        "an empty shard": (blobs(), {"clusters": 8, "restarts": 2, "scout_size": None, "split": 6000}),
    }


def cluster(points: torch.Tensor, clusters: int, restarts: int, split: int | None = None, **options):
    ends = [0, len(points)]
    if world_size() > 1:  # uneven on purpose
        ends = [0, len(points) * 5 // 8 if split is None else split, len(points)]
    part = slice(*ends[rank() : rank() + 2])
    if "weights" in options:
        options["weights"] = options["weights"][part]
    generator = torch.Generator().manual_seed(5)
    return spherical_kmeans(points[part], clusters, restarts, generator, sharded=world_size() > 1, **options)


def main(process: int, processes: int, folder: Path) -> None:
    torch.set_num_threads(1)
    if processes > 1:
        store = f"file://{folder / 'store'}"
        dist.init_process_group(
            "gloo", init_method=store, rank=process, world_size=processes, timeout=timedelta(minutes=5)
        )
    results = {
        "collectives": {
            "sum": sum_over_processes(torch.tensor([process + 1.0])),
            "each": each_process(torch.tensor([process, 7])),
            "first": from_first_process(torch.tensor([process + 10])),
            "rank": rank(),
            "world": world_size(),
        }
    }
    for name, (points, options) in cases().items():
        found = cluster(points, **options)
        results[name] = {"labels": found.labels, "centres": found.centres, "inertia": found.inertia}
    torch.save(results, folder / f"{process}-of-{processes}.pt")
    if processes > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
