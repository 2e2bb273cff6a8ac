"""Choice of the number of clusters, once the network was trained without clusters."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from propos.clustering import SUGGEST, Suggestion, sample_positions
from propos.config import Config
from propos.data import Source
from propos.distributed import broadcast, gather_rows
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


def choose_clusters(recorder: Recorder, source: Source) -> tuple[Learner, Float[Tensor, "n D"]]:
    """Choose the number of clusters and write it into the run; return the learner with it.

    Also return the embeddings, of this process's share of the images, that it was chosen by: an E-step follows.
    """
    learner = recorder.learner
    embeddings = current_embeddings(learner, source, recorder.state.epoch)
    suggestion = _suggest(recorder, embeddings)
    # Machines may round scores differently: all processes use the first one's choice.
    chosen = int(broadcast(torch.tensor(suggestion.chosen)))
    config = learner.config.with_settings({"clusters": chosen})
    recorder.learner = replace(learner, config=config)
    if recorder.run is not None:
        recorder.run.write_suggestion(suggestion.plain(), config)
    recorder.progress.suggestion(suggestion)
    return recorder.learner, embeddings


def _suggest(recorder: Recorder, embeddings: Float[Tensor, "n D"]) -> Suggestion:
    """Suggest a number from embeddings; a run that was stopped chooses again, with the same result."""
    config, images = recorder.learner.config, recorder.learner.schedule.images
    assert config.suggest.range is not None

    draw = generator(config.seed, "suggestion")
    sample = sample_positions(images, config.suggest.range[1], draw).to(embeddings.device)
    points = gather_rows(embeddings, sample, images)
    suggest = SUGGEST[config.suggest.by]
    return suggest(points, *config.suggest.range, draw, lambda clusters: recorder.stop_while_choosing())
