"""K-means over two real processes equals k-means of the concatenated points in one."""

import pytest
import torch

from helpers.processes import run_on
from propos.clustering import spherical_kmeans
from propos.distributed import (
    all_gather,
    broadcast,
    gather_rows,
    rank,
    share,
    sum_over_processes,
    world_size,
)


def blobs(points=6000, clusters=8):
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(clusters, 16, generator=generator)
    return centres[torch.arange(points) % clusters] + 0.6 * torch.randn(points, 16, generator=generator)


CASES = {
    "scouted": (blobs(), {"clusters": 8, "restarts": 3, "scout_size": 1000}),
    "whole": (blobs(1500), {"clusters": 8, "restarts": 3}),
    "every restart on all points": (blobs(), {"clusters": 8, "restarts": 2, "scout_size": None}),
    "many clusters": (blobs(), {"clusters": 50, "restarts": 1, "scout_size": 2000}),
    "weights": (blobs(), {"clusters": 8, "restarts": 1, "scout_size": None, "weights": 1.0 + torch.arange(6000) % 3}),
    "identical points": (torch.ones(6000, 4), {"clusters": 5, "restarts": 2}),
    "empty at first": (blobs(), {"clusters": 3, "restarts": 0, "previous": torch.ones(3, 16)}),
    "some fixed": (
        blobs(),
        {"clusters": 8, "restarts": 0, "previous": blobs(8), "fixed": torch.where(torch.arange(6000) % 9 > 0, -1, 3)},
    ),
    "an empty shard": (blobs(), {"clusters": 8, "restarts": 1, "scout_size": None, "split": 6000}),
}


def cluster(process, world, points, clusters, restarts, split=None, **options):
    """Cluster one process's part of the points; the parts are uneven."""
    ends = [0, len(points)] if world == 1 else [0, len(points) * 5 // 8 if split is None else split, len(points)]
    part = slice(*ends[process : process + 2])
    options |= {key: options[key][part] for key in ("weights", "fixed") if key in options}
    generator = torch.Generator().manual_seed(5)
    found = spherical_kmeans(points[part], clusters, restarts, generator, sharded=world > 1, **options)
    return {"labels": found.labels, "centres": found.centres, "inertia": found.inertia}


def all_cases(process, world):
    results = {name: cluster(process, world, points, **options) for name, (points, options) in CASES.items()}
    results["collectives"] = {
        "sum": sum_over_processes(torch.tensor([process + 1.0])),
        "each": all_gather(torch.tensor([process, 7])),
        "first": broadcast(torch.tensor([process + 10])),
        # Of a table of 5 rows the first process holds 2, the second 3.
        "rows": gather_rows(10 * torch.arange(5)[:, None][share(5)], torch.tensor([4, 0, 2]), 5),
        "large": sum_over_processes(torch.full((20_000,), process + 1.0)),
        "rank": rank(),
        "world": world_size(),
    }
    return results


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return run_on(2, all_cases, tmp_path_factory.mktemp("two"))


def test_collectives_do_what_they_say(two):
    for process, results in enumerate(two):
        made = results["collectives"]
        assert made["sum"].tolist() == [3.0]
        assert made["rows"].tolist() == [[40], [0], [20]]
        assert made["large"].unique().tolist() == [3.0]
        assert made["each"].tolist() == [[0, 7], [1, 7]]
        assert made["first"].tolist() == [10]
        assert (made["rank"], made["world"]) == (process, 2)


def test_collectives_of_one_process_return_what_they_are_given():
    local = torch.arange(3)
    assert sum_over_processes(local) is local
    assert broadcast(local) is local
    assert all_gather(local).tolist() == [[0, 1, 2]]
    assert (rank(), world_size()) == (0, 1)


@pytest.mark.parametrize("case", CASES)
def test_shards_give_the_result_of_the_whole(case, two):
    points, options = CASES[case]
    whole = cluster(0, 1, points, **options)
    first, second = (results[case] for results in two)
    assert torch.equal(first["centres"], second["centres"])
    torch.testing.assert_close(first["centres"], whole["centres"], atol=1e-5, rtol=0)
    labels = torch.cat([first["labels"], second["labels"]])
    assert (labels == whole["labels"]).float().mean() >= 0.9995
    assert first["inertia"] == pytest.approx(whole["inertia"], rel=1e-5, abs=1e-2)
    assert torch.bincount(labels, minlength=options["clusters"]).min() > 0
