"""K-means over two real processes equals k-means of the concatenated points in one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from propos.distributed import each_process, from_first_process, rank, sum_over_processes, world_size

WORKER = Path(__file__).parent / "kmeans_worker.py"
CASES = [
    "scouted",
    "whole",
    "every restart on all points",
    "many clusters",
    "weights",
    "identical points",
    "empty at first",
    "an empty shard",
]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict[tuple[int, int], dict]:
    """What each process saved, by (its number, how many there were)."""
    folder = tmp_path_factory.mktemp("shards")
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    runs = [(0, 1), (0, 2), (1, 2)]
    workers = [
        subprocess.Popen([sys.executable, WORKER, *map(str, run), folder], env=environment, stderr=subprocess.PIPE)
        for run in runs
    ]
    try:
        for worker in workers:
            _, errors = worker.communicate(timeout=600)
            assert worker.returncode == 0, errors.decode()
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            worker.stderr.close()
    return {run: torch.load(folder / f"{run[0]}-of-{run[1]}.pt", weights_only=True) for run in runs}


def test_collectives_do_what_they_say(results):
    for process in range(2):
        made = results[process, 2]["collectives"]
        assert made["sum"].tolist() == [3.0]
        assert made["each"].tolist() == [[0, 7], [1, 7]]
        assert made["first"].tolist() == [10]
        assert (made["rank"], made["world"]) == (process, 2)


def test_collectives_of_one_process_return_what_they_are_given():
    local = torch.arange(3)
    assert sum_over_processes(local) is local
    assert from_first_process(local) is local
    assert each_process(local).tolist() == [[0, 1, 2]]
    assert (rank(), world_size()) == (0, 1)


@pytest.mark.parametrize("case", CASES)
def test_shards_give_the_result_of_the_whole(case, results):
    whole, first, second = (results[run][case] for run in ((0, 1), (0, 2), (1, 2)))
    assert torch.equal(first["centres"], second["centres"])
    torch.testing.assert_close(first["centres"], whole["centres"], atol=1e-5, rtol=0)
    labels = torch.cat([first["labels"], second["labels"]])
    assert (labels == whole["labels"]).float().mean() >= 0.9995
    assert first["inertia"] == pytest.approx(whole["inertia"], rel=1e-5, abs=1e-2)
    assert torch.bincount(labels, minlength=len(whole["centres"])).min() > 0
