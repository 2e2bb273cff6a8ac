"""Estimation of a run's duration from a few steps of a temporary learner."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from propos.config import Config
from propos.data import Source, select_some
from propos.distributed import broadcast, world_size
from propos.methods import stages_of
from propos.methods.seeds import generator
from propos.networks.frozen_backbone import PART
from propos.training.choose_k import estep_due
from propos.training.e_step import Partition
from propos.training.embedding import embed_batches, embedding_batch_size
from propos.training.features import FeatureSource, as_features, frozen_backbone_of
from propos.training.learner import Learner, at_stage, build_learner
from propos.training.m_step import m_step
from propos.training.numerics import numerics
from propos.training.order import epoch_order
from propos.training.prefetch import reading_ahead
from propos.training.stage_setup import begin_epoch
from propos.training.stages import tables_due
from propos.training.state import State, first_state

ENOUGH_SECONDS = 2.0
# Images on which steps are timed: a step takes as long with more, and tables of all images would take as long as a run.
FEW_IMAGES = 4096
IMAGES_A_CLUSTER = 8


def estimate_seconds(config: Config, source: Source, device: torch.device) -> float:
    """Return the estimated duration of training in seconds, without k-means; the run itself is not touched.

    All processes take part, and get the first one's estimate.
    """
    images, unlabelled = len(source), len(source.unlabelled or ())
    before, some = _with_features(config, source, select_some(source, _enough_images(config)), device)
    with numerics(config.train), reading_ahead(some, device) as ahead:
        return before + _estimate(config, ahead, images, unlabelled, device)


def _enough_images(config: Config) -> int:
    """Return the number of images that steps are timed on: a few batches, and some for each cluster."""
    settings = [{**config.train.model_dump(), **stage.train} for stage in stages_of(config)] or [
        config.train.model_dump()
    ]
    step: int = max(each["batch_size"] * each["accumulate"] for each in settings)
    return max(FEW_IMAGES, 2 * step, IMAGES_A_CLUSTER * (config.clusters or 0))


def _estimate(config: Config, source: Source, images: int, unlabelled: int, device: torch.device) -> float:
    """Return the duration for a number of images, from steps on a source of some of them."""
    learner = build_learner(config, source, device)
    encoder = learner.method.embedder

    def embed() -> None:
        next(iter(embed_batches(encoder, source, config)))

    per_batch, batches = _seconds(embed, device), np.ceil(images / embedding_batch_size(config) / world_size())
    steps, esteps = 0.0, 1
    per_step = 0.0
    for number in range(len(learner.stages)):
        learner = at_stage(learner, number)
        if not (number and learner.stage.tables_every is not None):  # without its tables, as the stage before
            per_step = _step_seconds(learner, source)
        schedule = replace(learner.schedule, images=images, unlabelled=unlabelled if learner.schedule.unlabelled else 0)
        steps += per_step * schedule.steps * len(learner.epochs)
        esteps += sum(estep_due(config, learner.stage, learner.stage_epoch(epoch), epoch) for epoch in learner.epochs)
        esteps += sum(tables_due(learner.stage, learner.stage_epoch(epoch)) for epoch in learner.epochs)
    return float(steps + per_batch * batches * esteps)


def _with_features(config: Config, source: Source, some: Source, device: torch.device) -> tuple[float, Source]:
    """Return how long a pretrained network's features take, 0 without one, and random features of some images."""
    frozen_backbone = frozen_backbone_of(config)
    if frozen_backbone is None:
        return 0.0, some
    few = np.arange(min(PART, len(source)))
    seen = as_features(frozen_backbone, source, device)
    seconds = _seconds(lambda: seen.batch(few), device) * len(source) / len(few)
    drawn = torch.rand((len(some), frozen_backbone.features), generator=generator(0, "estimate")).numpy()
    return seconds, FeatureSource(some, lambda positions: drawn[positions], frozen_backbone.features)


def _step_seconds(learner: Learner, source: Source) -> float:
    state = late_state(learner)
    positions = epoch_order(learner.config.seed, 0, learner.schedule)[0]
    if learner.stage.tables_every is not None:
        state.epoch = learner.epochs.start
        begin_epoch(learner, source, state)
        state.epoch = learner.epochs.stop - 1
    return _seconds(lambda: m_step(learner, source, positions, state), learner.device)


def late_state(learner: Learner) -> State:
    """Return a state of the stage's last epoch, in which every loss acts, with arbitrary labels."""
    state = first_state(learner)
    labels = torch.arange(learner.schedule.images, device=learner.device) % (learner.config.clusters or 2)
    state.stage, state.epoch = learner.number, learner.epochs.stop - 1
    prototypes = torch.zeros(learner.config.clusters or 2, learner.dimension, device=learner.device)
    state.partition = Partition(labels, prototypes)
    return state


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    """Return the median duration of a function, without its first, slower call."""
    times: list[float] = []
    started = time.perf_counter()
    while len(times) < 2 or (len(times) < 6 and _of_first_process(time.perf_counter() - started) < ENOUGH_SECONDS):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - start)
    return _of_first_process(float(np.median(times[1:])))


def _of_first_process(seconds: float) -> float:
    """Return the first process's value."""
    return float(broadcast(torch.tensor(seconds, dtype=torch.float64)))
