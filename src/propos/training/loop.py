"""The EM loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import torch
from jaxtyping import Int
from torch import Tensor

from propos.config import Config
from propos.data import Source, prefetch
from propos.distributed import share
from propos.evaluation import numbered
from propos.methods import Stage
from propos.runs import RunFolder
from propos.training.checkpoint import load_checkpoint
from propos.training.choosing import choose_clusters, estep_due, first_estep
from propos.training.continuation import WarmStart
from propos.training.corrections import Corrections
from propos.training.embedding import head_clusters
from propos.training.expectation import Partition, expectation
from propos.training.feeding import feed
from propos.training.learner import Learner, at_stage, begin_anew, build_learner
from propos.training.maximization import maximization_step
from propos.training.model import Fitted, fitted
from propos.training.numerics import numerics
from propos.training.opening import open_stage, refresh
from propos.training.order import epoch_order
from propos.training.progress import Progress
from propos.training.reading import reading_ahead
from propos.training.recorder import Recorder
from propos.training.starting import start_learning
from propos.training.state import State


def train(
    config: Config,
    source: Source,
    device: torch.device,
    progress: Progress,
    run: RunFolder | None = None,
    stop: Callable[[], bool] = lambda: False,
    start: WarmStart | None = None,
) -> Fitted:
    """Train on a source from complete settings, from the run's last checkpoint if it has one.

    Of several processes that share the batches, the first alone has the run and what to start from.
    """
    with numerics(config.train):
        fed = feed(config, source, device, progress.working, stop)
        with reading_ahead(fed, device) as ahead:
            return _train(config, ahead, device, progress, run, stop, start)


def _train(
    config: Config,
    source: Source,
    device: torch.device,
    progress: Progress,
    run: RunFolder | None,
    stop: Callable[[], bool],
    start: WarmStart | None,
) -> Fitted:
    start = WarmStart.of_first_process(start)
    said = None if start is None else start.corrections
    learner = build_learner(config, source, device, 0 if said is None else said.left_out)
    learner, state = load_checkpoint(run, learner, progress)
    if start is not None:
        start.begin(learner, state)
    elif state.fresh:
        start_learning(learner, source)
    with closing(Recorder(learner, state, run, progress, stop)) as recorder:
        return _learn(config, source, recorder, start)


def _learn(config: Config, source: Source, recorder: Recorder, start: WarmStart | None) -> Fitted:
    """Go through the stages from where the recorder's state stands, and find the run's answer."""
    learner, state, progress = recorder.learner, recorder.state, recorder.progress
    said = None if start is None else start.corrections
    labels = None if source.labels is None else numbered(source.labels)
    stages = learner.method.stages if learner.method.terms else ()
    progress.begin(config.train.epochs if stages else 0, learner.schedule.steps, state.epoch)

    for number in range(state.stage, len(stages)):
        recorder.learner = learner = at_stage(recorder.learner, number)
        open_stage(learner, source, state, said)
        for epoch in range(state.epoch, learner.epochs.stop):
            since = learner.since(epoch)
            if state.opening is None:
                refresh(learner, source, state, said)
                if learner.centres is not None:
                    learner.centres.begin_epoch()
                if epoch >= first_estep(config):
                    learner = choose_clusters(recorder, source)
                due = estep_due(config, learner.stage, since, epoch)
                before = state.partition, state.streamed, said
                answer = expectation(learner, source, epoch, *before) if due else None
                if answer is not None:
                    begin_anew(learner, epoch)
                    recorder.show(answer, source)
                recorder.open_epoch(answer, labels)
            for batch in epoch_batches(learner, source, state, said):
                recorder.after_step(maximization_step(learner, source, batch, state))
            recorder.close_epoch()

    learner = choose_clusters(recorder, source)
    answer = expectation(learner, source, state.epoch, state.partition, corrections=said)
    if start is not None and said is None and learner.stage.answer == "k-means":
        answer = start.renumber(answer)
    recorder.show(answer, source, last=True)
    by_head = answer.labels if learner.stage.answer == "head" else head_clusters(learner.network, source, config)
    recorder.close_run(answer, labels, by_head)
    return fitted(learner, source, answer, state.history, said)


def _balance(stage: Stage, partition: Partition) -> Int[Tensor, " N"] | None:
    """Return the clusters of which each is drawn from as often, if any are."""
    if stage.further is not None and stage.further.balanced and partition.groupings:
        return partition.groupings[0].labels
    return partition.labels if stage.balanced else None


def epoch_batches(
    learner: Learner, source: Source, state: State, corrections: Corrections | None = None
) -> Iterator[Int[Tensor, " A*B"]]:
    """Yield the images of each step of the epoch that is left, and have the source look ahead for them."""
    assert state.partition is not None
    balance = _balance(learner.stage, state.partition)
    drawn = None if corrections is None else corrections.taking_part.nonzero()[:, 0]
    batches = epoch_order(learner.config.seed, state.epoch, learner.schedule, balance, drawn)[state.step :]
    mine = share(learner.schedule.batch)
    prefetch(source, batches.reshape(-1, learner.schedule.batch)[:, mine].numpy())
    yield from batches
