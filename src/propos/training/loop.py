"""The EM loop: stages, their epochs, and in each epoch an E-step and the M-steps; it continues from a `State`."""

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
from propos.runs import RunFolder
from propos.training.checkpoint import load_checkpoint
from propos.training.choose_k import choose_clusters, estep_due, first_estep
from propos.training.context import BatchContext
from propos.training.continuation import WarmStart
from propos.training.corrections import Corrections
from propos.training.e_step import e_step, embedded_images
from propos.training.embedding import head_clusters
from propos.training.features import prepare_inputs
from propos.training.learner import Learner, at_stage, build_learner
from propos.training.m_step import m_step
from propos.training.model import Fitted, fitted
from propos.training.numerics import numerics
from propos.training.order import epoch_order
from propos.training.prefetch import reading_ahead
from propos.training.pretrained_init import initialise_from_pretrained
from propos.training.progress import Progress
from propos.training.recorder import Recorder
from propos.training.shared_features import shared_features
from propos.training.stage_setup import begin_epoch
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
    """Train on a source with complete settings. If the run has a checkpoint, resume from it.

    Of several processes, only the first has the run folder and `start`.
    """
    with numerics(config.train):
        inputs = prepare_inputs(config, source, device, progress.show_task, stop, find=shared_features)
        with reading_ahead(inputs, device) as prefetched:
            start = WarmStart.of_first_process(start)
            left_out = 0 if start is None or start.corrections is None else start.corrections.left_out
            learner, state = load_checkpoint(run, build_learner(config, prefetched, device, left_out), progress)
            if start is not None:
                start.apply(learner, state)
            elif state.not_started:
                initialise_from_pretrained(learner, prefetched)
            with closing(Recorder(learner, state, run, progress, stop)) as recorder:
                return _learn(config, prefetched, recorder, start)


def _learn(config: Config, source: Source, recorder: Recorder, start: WarmStart | None) -> Fitted:
    """Run the stages from the recorder's state on, and find the final clusters."""
    learner, state, progress = recorder.learner, recorder.state, recorder.progress
    corrections = None if start is None else start.corrections
    labels = None if source.labels is None else numbered(source.labels)
    progress.begin(config.train.epochs if learner.stages else 0, learner.schedule.steps, state.epoch)

    for number in range(state.stage, len(learner.stages)):
        recorder.learner = learner = at_stage(recorder.learner, number)
        for epoch in range(state.epoch, learner.epochs.stop):
            if not state.epoch_open:
                begin_epoch(learner, source, state, corrections)
                embeddings = state.streamed
                if learner.config.clusters is None and epoch >= first_estep(config):
                    learner, embeddings = choose_clusters(recorder, source)
                found = None
                if estep_due(config, learner.stage, learner.stage_epoch(epoch), epoch):
                    found = e_step(learner, source, epoch, state.partition, embeddings, corrections)
                    clustered = embedded_images(learner, found, epoch, corrections)
                    learner.method.after_clustering(clustered, BatchContext.of(learner, state))
                    recorder.show(found, source)
                recorder.open_epoch(found, labels)
            for batch in epoch_batches(learner, source, state, corrections):
                recorder.after_step(m_step(learner, source, batch, state))
            learner.method.end_epoch(BatchContext.of(learner, state))
            recorder.close_epoch()

    embeddings = None
    if learner.config.clusters is None:
        learner, embeddings = choose_clusters(recorder, source)
    final = e_step(learner, source, state.epoch, state.partition, embeddings, corrections)
    if start is not None and corrections is None and learner.stage.decides == "k-means":
        final = start.renumber(final)
    recorder.show(final, source, last=True)
    by_head = final.labels if learner.stage.decides == "head" else head_clusters(learner.method, source, config)
    recorder.close_run(final, labels, by_head)
    return fitted(learner, source, final, state.history, corrections)


def epoch_batches(
    learner: Learner, source: Source, state: State, corrections: Corrections | None = None
) -> Iterator[Int[Tensor, " A*B"]]:
    """Yield the images of each remaining step of the epoch (A accumulated batches of B), and prefetch them."""
    assert state.partition is not None
    balance = learner.method.sampling_labels()
    if balance is None and learner.config.train.balanced:
        balance = state.partition.labels
    included = None if corrections is None else corrections.included.nonzero()[:, 0]
    batches = epoch_order(learner.config.seed, state.epoch, learner.schedule, balance, included)[state.step :]
    local = share(learner.schedule.batch)
    prefetch(source, batches.reshape(-1, learner.schedule.batch)[:, local].numpy())
    yield from batches
