"""The epochs of stages, and when clusters are first needed."""

from __future__ import annotations

from itertools import pairwise

from propos.common.errors import InputError
from propos.config import Config
from propos.methods import Stage, stages_of


def stage_epochs(stages: tuple[Stage, ...], epochs: int) -> tuple[range, ...]:
    """Divide the epochs of a run among the stages by their shares, at least one for each."""
    if epochs < len(stages):
        raise InputError(f"train.epochs = {epochs}: the method has {len(stages)} stages, which need an epoch each")
    whole = sum(stage.share for stage in stages)
    bounds, done = [0], 0.0
    for place, stage in enumerate(stages):
        done += stage.share
        left = len(stages) - place - 1
        bounds.append(min(max(round(epochs * done / whole), bounds[-1] + 1), epochs - left))
    return tuple(range(start, stop) for start, stop in pairwise(bounds))


def clusters_needed(config: Config) -> int:
    """Return the epoch at which training first needs clusters: 0 without training, the end where it never does."""
    stages = stages_of(config)
    if not stages:
        return 0
    firsts = (
        span.start + first
        for stage, span in zip(stages, stage_epochs(stages, config.train.epochs), strict=True)
        if (first := first_clusters(config, stage)) is not None and first < len(span)
    )
    return min(firsts, default=config.train.epochs)


def late_losses(config: Config) -> list[str]:
    """Return a warning for each loss that would start after the last epoch of its stage."""
    stages, texts = stages_of(config), []
    for stage, span in zip(stages, stage_epochs(stages, config.train.epochs) if stages else (), strict=True):
        if not stage.starts and (stage.first_clusters or 0) >= len(span):
            texts.append("training ends before clusters are used: train longer (--epochs)")
        for loss, start in stage.starts.items():
            if start.epoch >= len(span):
                key = start.key(config.method)
                texts.append(
                    f"{loss} would start at epoch {start.epoch} of {len(span)} (the first is 0): {start.change} {key}, "
                    "or train longer (--epochs)"
                )
    return texts


def first_clusters(config: Config, stage: Stage) -> int | None:
    """Return the first epoch of a stage that needs clusters: 0 if clusters are sampled equally often."""
    return 0 if config.train.balanced else stage.first_clusters


def tables_due(stage: Stage, epoch: int) -> bool:
    """Return whether a stage computes its tables before an epoch of its own."""
    every = stage.tables_every
    return every is not None and (epoch == 0 or (every > 0 and epoch % every == 0))
