"""Opening a stage: a queue of its own, and what it computes of all images first."""

from __future__ import annotations

from dataclasses import replace

import torch

from propos.data import Source
from propos.distributed import gather, share
from propos.methods import Preparation, Seen
from propos.training.bank import first_bank
from propos.training.corrections import Corrections
from propos.training.embedding import see_batches
from propos.training.expectation import Partition, clusters_now
from propos.training.learner import Learner
from propos.training.state import State, first_placed, first_queue


def open_stage(learner: Learner, source: Source, state: State, corrections: Corrections | None = None) -> None:
    """Put a state at the start of the learner's stage; where it is inside it already, complete it."""
    if learner.stage.begins_at_clusters and (state.fresh or state.stage != learner.number):
        found = clusters_now(learner, source, state.epoch, state.partition, corrections)
        learner.network.begin_at(found.prototypes)
    if state.stage != learner.number:
        state.stage, state.queue, state.streamed, state.prepared = learner.number, first_queue(learner), None, {}
        state.bank, state.placed = first_bank(learner), first_placed(learner)
        if state.partition is not None:
            # A head's clusters have nothing to do with those of k-means before it.
            prototypes = state.partition.prototypes[: 0 if learner.stage.answer == "head" else None]
            state.partition = Partition(state.partition.labels, prototypes)
    if any(preparation.name not in state.prepared for preparation in learner.stage.preparations):
        _prepare(learner, source, state, learner.stage.preparations, corrections)
    _keep_neighbours(state)


def refresh(learner: Learner, source: Source, state: State, corrections: Corrections | None = None) -> None:
    """Compute anew what a stage computes of all images every so many epochs; the first has what it opened with."""
    if learner.stage.refreshed_at(learner.since(state.epoch)):
        _prepare(learner, source, state, learner.stage.refreshes, corrections)
        _keep_neighbours(state)


def _keep_neighbours(state: State) -> None:
    """Keep neighbours, where a stage knows any, on the host too, which reads their images."""
    state.neighbours = state.prepared["neighbours"].cpu() if "neighbours" in state.prepared else None


def _prepare(
    learner: Learner,
    source: Source,
    state: State,
    preparations: tuple[Preparation, ...],
    corrections: Corrections | None,
) -> None:
    seen = _see(learner, source, corrections)
    for preparation in preparations:
        made = preparation(replace(seen, tables=state.prepared))
        state.prepared[preparation.name] = gather(made.contiguous(), len(source))


def _see(learner: Learner, source: Source, corrections: Corrections | None) -> Seen:
    """Return what the network makes of all images, on every process; of those that take no part, nothing."""
    mine = share(len(source))
    network, embeds = learner.network, learner.method.embeds
    batches = list(see_batches(network, embeds, source, learner.config, mine, every_head=True))
    embeddings, features = torch.cat([batch[0] for batch in batches]), torch.cat([batch[1] for batch in batches])
    heads = [batch[2] for batch in batches if batch[2] is not None]
    assigned = torch.cat(heads) if heads else None
    if corrections is not None:  # a vector of zeros is nobody's neighbour, and no part of a cluster
        part = corrections.taking_part[mine].to(embeddings)[:, None]
        embeddings, features = embeddings * part, features * part
        assigned = None if assigned is None else assigned * part[:, :, None]
    assignments = None if assigned is None else gather(assigned, len(source))
    return Seen(gather(embeddings, len(source)), gather(features, len(source)), assignments, network.chosen_head, mine)
