"""The EM loop."""

from __future__ import annotations

from collections.abc import Callable

import torch

from propos.config import Config
from propos.data import Source, prefetch
from propos.distributed import share
from propos.runs import RunFolder
from propos.training.checkpoint import load_checkpoint
from propos.training.choosing import first_estep, settle_clusters
from propos.training.continuation import Start
from propos.training.embedding import head_clusters
from propos.training.expectation import expectation
from propos.training.keeper import Keeper
from propos.training.learner import build_learner
from propos.training.maximization import maximization_step
from propos.training.model import Fitted, fitted
from propos.training.order import epoch_order
from propos.training.progress import Progress


def train(
    config: Config,
    source: Source,
    device: torch.device,
    progress: Progress,
    run: RunFolder | None = None,
    stop: Callable[[], bool] = lambda: False,
    start: Start | None = None,
) -> Fitted:
    """Train on a source from complete settings, from the run's last checkpoint if it has one.

    Of several processes that share the batches, the first alone has the run and what to start from.
    """
    learner = build_learner(config, source, device)
    state = load_checkpoint(run, learner, progress)
    start = Start.of_first_process(start)
    if start is not None:
        start.begin(learner, state)
    keeper = Keeper(learner, state, run, progress, stop)
    steps = learner.schedule.steps
    epochs = config.train.epochs if learner.method.terms else 0
    progress.begin(epochs, steps, state.epoch)

    for epoch in range(state.epoch, epochs):
        if state.opening is None:
            if epoch >= first_estep(config):
                learner = settle_clusters(keeper, source)
            due = estep_due(config, epoch)
            found = expectation(learner, source, epoch, state.partition, state.streamed) if due else None
            keeper.open_epoch(found, source.labels)
        assert state.partition is not None
        balance = state.partition.labels if config.train.balanced and epoch >= config.psl_start else None
        batches = epoch_order(config.seed, epoch, learner.schedule, balance)
        mine = share(learner.schedule.batch)
        prefetch(source, batches[state.step :].reshape(-1, learner.schedule.batch)[:, mine].numpy())
        for step in range(state.step, steps):
            keeper.after_step(maximization_step(learner, source, batches[step], state))
        keeper.close_epoch()

    learner = settle_clusters(keeper, source)
    answer = expectation(learner, source, epochs, state.partition)
    if start is not None:
        answer = start.renumber(answer)
    keeper.close_run(answer, source.labels, head_clusters(learner.network, source, config))
    return fitted(learner, source, answer, state.history)


def estep_due(config: Config, epoch: int) -> bool:
    """Return whether an E-step opens the epoch: one when scattering starts, then every r epochs from there."""
    since = epoch - config.psl_start if epoch >= config.psl_start else epoch
    return epoch >= first_estep(config) and since % config.estep.every == 0
