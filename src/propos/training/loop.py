"""The EM loop."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor

from propos.config import Config
from propos.data import Source
from propos.runs import RunFolder
from propos.training.checkpoint import load_checkpoint
from propos.training.expectation import expectation
from propos.training.keeper import Keeper
from propos.training.learner import build_learner
from propos.training.maximization import maximization_step
from propos.training.model import Fitted, fitted
from propos.training.progress import Progress
from propos.training.schedule import Schedule
from propos.training.seeds import generator
from propos.training.state import State


def train(
    config: Config,
    source: Source,
    device: torch.device,
    progress: Progress,
    run: RunFolder | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Fitted:
    """Train on a source from complete settings, from the run's last checkpoint if it has one."""
    learner = build_learner(config, source, device)
    state = State() if run is None else load_checkpoint(run, learner, progress)
    keeper = Keeper(learner, state, run, progress, stop)
    steps = learner.schedule.steps
    progress.begin(config.train.epochs, steps, state.epoch)

    for epoch in range(state.epoch, config.train.epochs):
        if state.opening is None:
            due = estep_due(config, epoch)
            found = expectation(learner, source, epoch, state.partition, state.streamed) if due else None
            keeper.open_epoch(found, source.labels)
        assert state.partition is not None
        labels = state.partition.labels
        batches = epoch_order(config.seed, epoch, learner.schedule)
        for step in range(state.step, steps):
            now = epoch * steps + step
            losses = maximization_step(learner, source, batches[step], labels, epoch, now, state.streamed)
            keeper.after_step(losses)
        keeper.close_epoch()

    answer = expectation(learner, source, config.train.epochs, state.partition)
    keeper.close_run(answer, source.labels)
    return fitted(learner, source, answer, state.history)


def estep_due(config: Config, epoch: int) -> bool:
    """Return whether an E-step opens the epoch: one when scattering starts, then every r epochs from there."""
    since = epoch - config.psl_start if epoch >= config.psl_start else epoch
    return since % config.estep.every == 0


def epoch_order(seed: int, epoch: int, schedule: Schedule) -> Int[Tensor, "S A*B"]:
    """Return the images of each step of an epoch: a function of seed and epoch alone."""
    shuffled = torch.randperm(schedule.images, generator=generator(seed, "order", epoch))
    per_step = schedule.batch * schedule.accumulate
    return shuffled[: schedule.steps * per_step].view(schedule.steps, per_step)
