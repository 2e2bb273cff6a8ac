"""Running one function on several real processes joined by gloo over loopback."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from helpers.forked import FORKS


def _work(rank, world, folder, function):
    torch.set_num_threads(1)
    os.environ.update(GLOO_SOCKET_IFNAME="lo")
    # They meet in a file: a port that is free now may be taken by the time it is used.
    dist.init_process_group("gloo", init_method=f"file://{folder}/met", rank=rank, world_size=world)
    try:
        torch.save(function(rank, world), folder / f"{rank}.pt")
    finally:
        dist.destroy_process_group()


def run_on(world, function, folder):
    """Return what function(rank, world) returned on each process."""
    mp.start_processes(_work, args=(world, folder, function), nprocs=world, start_method=FORKS.get_start_method())
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(world)]
