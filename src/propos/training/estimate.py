"""How long a run will take, from a few steps of a throw-away learner."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from propos.config import Config
from propos.data import Source
from propos.training.embedding import BATCH, embed_batches
from propos.training.learner import build_learner
from propos.training.loop import epoch_order, estep_due
from propos.training.maximization import maximization_step

ENOUGH_SECONDS = 2.0


def estimate_seconds(config: Config, source: Source, device: torch.device) -> float:
    """Return the seconds that training will take, k-means aside; the run itself is not touched."""
    learner = build_learner(config, source, device)
    positions = epoch_order(config.seed, 0, learner.schedule)[0]
    labels = torch.arange(len(source), device=device) % (config.clusters or 2)
    last = config.train.epochs - 1

    def step() -> None:
        maximization_step(learner, source, positions, labels, last, 0)

    def embed() -> None:
        next(iter(embed_batches(learner.network.target, source, config)))

    per_step, per_batch = _seconds(step, device), _seconds(embed, device)
    esteps = 1 + sum(estep_due(config, epoch) for epoch in range(config.train.epochs))
    batches = np.ceil(len(source) / BATCH)
    return float(per_step * learner.schedule.steps * config.train.epochs + per_batch * batches * esteps)


def _seconds(work: Callable[[], None], device: torch.device) -> float:
    """Return the median time of some work after a first, slower time."""
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < 2 or (len(times) < 6 and time.perf_counter() - begin < ENOUGH_SECONDS):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))
