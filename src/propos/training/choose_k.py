"""Choice of the number of clusters, once the network was trained without clusters."""

from __future__ import annotations

from dataclasses import replace

import torch

from propos.clustering import Suggestion, sample_positions, suggest_clusters
from propos.common.errors import Interrupted
from propos.config import Config
from propos.data import Source
from propos.distributed import any_process, broadcast, gather_rows
from propos.methods import Stage
from propos.methods.seeds import generator
from propos.training.e_step import current_embeddings
from propos.training.learner import Learner
from propos.training.recorder import Recorder
from propos.training.stages import clusters_needed, first_clusters

BEFORE = 5  # times as many epochs lie between two E-steps before clusters are needed


def first_estep(config: Config) -> int:
    """Return the epoch of the first E-step: if K is to be chosen, the first epoch that needs clusters."""
    return 0 if config.suggest.range is None else clusters_needed(config)


def estep_due(config: Config, stage: Stage, stage_epoch: int, epoch: int) -> bool:
    """Return whether an epoch starts with an E-step: when the stage first needs clusters, then every r epochs.

    Before that, fewer E-steps serve the curves alone. `stage_epoch` is counted from the start of the stage.
    """
    needed = first_clusters(config, stage) or 0
    if stage_epoch < needed:
        return epoch >= first_estep(config) and stage_epoch % (BEFORE * config.estep.every) == 0
    return epoch >= first_estep(config) and (stage_epoch - needed) % config.estep.every == 0


def choose_clusters(recorder: Recorder, source: Source) -> Learner:
    """Return the learner with its number of clusters; choose it and write it into the run if it is not known yet."""
    learner = recorder.learner
    if learner.config.clusters is not None:
        return learner
    suggestion = _suggest(recorder, source)
    # Machines may round scores differently: all processes use the first one's choice.
    chosen = int(broadcast(torch.tensor(suggestion.chosen)))
    config = learner.config.with_settings({"clusters": chosen})
    recorder.learner = replace(learner, config=config)
    if recorder.run is not None:
        recorder.run.write_suggestion(suggestion.plain(), config)
    recorder.progress.suggestion(suggestion)
    return recorder.learner


def _suggest(recorder: Recorder, source: Source) -> Suggestion:
    """Suggest a number from the present embeddings; a run that was stopped chooses again, with the same result."""
    config = recorder.learner.config
    assert config.suggest.range is not None

    def stop_if_asked(clusters: int) -> None:
        if any_process(recorder.stop())[0]:
            raise Interrupted

    draw = generator(config.seed, "suggestion")
    embeddings = current_embeddings(recorder.learner, source, recorder.state.epoch)
    sample = sample_positions(len(source), config.suggest.range[1], draw).to(embeddings.device)
    points = gather_rows(embeddings, sample, len(source))
    return suggest_clusters(points, *config.suggest.range, draw, stop_if_asked)
