"""Choosing the number of clusters once the images have been learnt without one."""

from __future__ import annotations

from dataclasses import replace

import torch

from propos.clustering import Suggestion, points_to_look_at, suggest_clusters
from propos.config import Config
from propos.data import Source
from propos.distributed import any_process, from_first_process, rows_of_all
from propos.errors import Interrupted
from propos.methods import build_method
from propos.training.expectation import embeddings_now
from propos.training.keeper import Keeper
from propos.training.learner import Learner
from propos.training.seeds import generator


def first_estep(config: Config) -> int:
    """Return the epoch of the first E-step: where K is suggested, the first that needs clusters."""
    return 0 if config.suggest.range is None else clusters_needed(config)


def clusters_needed(config: Config) -> int:
    """Return the epoch at which training first needs clusters: when scattering, or contrast with prototypes, starts."""
    grouped = build_method(config).groupings
    return min(config.psl_start, config.train.warmup) if grouped else config.psl_start


def settle_clusters(keeper: Keeper, source: Source) -> Learner:
    """Return the learner with its number of clusters, chosen now and written into the run if it was not known."""
    learner = keeper.learner
    if learner.config.clusters is not None:
        return learner
    found = _suggest(keeper, source)
    # Unlike machines may round their scores differently; there is one number.
    chosen = int(from_first_process(torch.tensor(found.chosen)))
    config = learner.config.with_settings({"clusters": chosen})
    keeper.learner = replace(learner, config=config)
    if keeper.run is not None:
        keeper.run.write_suggestion(found.plain(), config)
    keeper.progress.suggestion(found)
    return keeper.learner


def _suggest(keeper: Keeper, source: Source) -> Suggestion:
    """Suggest a number from the present embeddings; a stopped run chooses again, and the same."""
    config = keeper.learner.config
    assert config.suggest.range is not None

    def stop_if_asked(clusters: int) -> None:
        if any_process(keeper.stop())[0]:
            raise Interrupted

    draw = generator(config.seed, "suggestion")
    embeddings = embeddings_now(keeper.learner, source, keeper.state.epoch)
    sample = points_to_look_at(len(source), config.suggest.range[1], draw).to(embeddings.device)
    points = rows_of_all(embeddings, sample, len(source))
    return suggest_clusters(points, *config.suggest.range, draw, stop_if_asked)
