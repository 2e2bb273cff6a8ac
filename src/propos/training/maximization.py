"""The M-step: a pair of views, the objectives, a gradient step, the moving average."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.data import Source
from propos.distributed import averaged, gather_together, share
from propos.methods import Term
from propos.networks import autocast
from propos.outputs import Bank, CentreSet, Grouping, Outputs
from propos.training.bank import moved
from propos.training.learner import Learner
from propos.training.optimiser import set_rates
from propos.training.pairs import further_view, paired_views, partners_of
from propos.training.queue import labels_of
from propos.training.seeds import generator
from propos.training.state import State
from propos.transfer import send

FURTHER = ("again", "again_projections")  # what there may be of one more view


def maximization_step(
    learner: Learner, source: Source, positions: Int[Tensor, " A*B"], state: State
) -> Float[Tensor, " T"]:
    """Take one optimiser step on the images at these positions and return the loss of each term and of each head.

    Accumulated batches are each a batch of their own for batch norm and prototypes. What the step makes of its
    images is left in the state's queue, bank and streamed embeddings, where there are any.
    """
    assert learner.optimiser is not None, "where nothing learns no step is taken"
    step = learner.since(state.epoch) * learner.schedule.steps + state.step
    set_rates(learner.optimiser, learner.schedule, step)
    learner.network.begin_step()
    batches = positions.chunk(learner.schedule.accumulate)
    losses = torch.zeros(learner.columns, device=learner.device)
    for part, batch in enumerate(batches):
        where = send(batch, learner.device)
        outputs = _outputs(learner, source, batch, where, state, (step, part))
        last = part == len(batches) - 1
        with averaged(learner.network.trained(), learner.network.moving_buffers()) if last else nullcontext():
            losses += _backward(learner, outputs, _labels(state, where), state.epoch) / len(batches)
        _remember(learner, outputs, batch, where, state)
    learner.scaler.step(learner.optimiser)
    learner.scaler.update()
    learner.optimiser.zero_grad(set_to_none=True)
    learner.network.move_target(learner.schedule.momentum(step))
    return losses


def active_terms(learner: Learner, epoch: int) -> list[tuple[int, Term]]:
    """Return the stage's terms that count at an epoch of the run, with their places."""
    since = learner.since(epoch)
    return [(place, term) for place, term in enumerate(learner.stage.terms) if term.counts_at(since)]


def _backward(learner: Learner, outputs: Outputs, labels: Int[Tensor, " B"], epoch: int) -> Float[Tensor, " T"]:
    """Add the gradients of one batch and return the loss of each term, and of each of several heads over the terms."""
    losses = torch.zeros(learner.columns, device=learner.device)
    total, terms = torch.zeros((), device=learner.device), len(learner.stage.terms)
    for place, term in active_terms(learner, epoch):
        if term.by_head is None:
            loss = term.objective(outputs, labels)
        else:
            each = term.by_head(outputs, labels)
            loss = each.sum()
            losses[terms:] += term.weight * each.detach()[: learner.columns - terms]
        losses[place] = loss.detach()
        total = total + term.weight * loss
    if not total.requires_grad:
        return losses  # no term counts in this epoch
    learner.scaler.scale(total / learner.schedule.accumulate).backward()
    return losses


def _outputs(
    learner: Learner,
    source: Source,
    batch: Int[Tensor, " B"],
    where: Int[Tensor, " B"],
    state: State,
    when: tuple[int, int],
) -> Outputs:
    """Pass a pair of views through the networks and gather what they make of the global batch, in float32."""
    config, device, stage = learner.config, learner.device, learner.stage
    part = share(len(batch))
    views = paired_views(learner, source, batch, state, when)
    again = further_view(learner, source, batch, when)
    near = None if stage.pairs.partner == "itself" else partners_of(learner, batch, state, when)
    noise, shuffle = None, None
    if stage.noise and learner.since(state.epoch) >= stage.noise_starts:
        shape = 2, len(batch), learner.dimension
        drawn = torch.randn(shape, generator=generator(learner.seed, "noise", *when))
        first, second = send(stage.noise * drawn[:, part], device)
        noise = first, second
    if config.network.shuffle_bn:
        shuffle = torch.randperm(len(batch), generator=generator(learner.seed, "shuffle", *when))
        shuffle = send(shuffle, device)

    with autocast(device, learner.schedule.settings.precision):
        passed = learner.network(
            views,
            noise,
            len(batch),
            shuffle,
            stage.pairs.of == "features",
            stage.pairs.settled,
            again,
            stage.pairs.again_for,
        )
    assert state.partition is not None
    outputs = _gathered(passed if stage.reads_features else replace(passed, features=None), len(batch))
    if outputs.target_assignments is not None:
        outputs = replace(outputs, shares=learner.network.move_shares(outputs.target_assignments))
    clusterings = tuple(each.labels for each in state.partition.groupings)
    return replace(
        outputs,
        clusters=config.clusters,
        prototypes=state.partition.prototypes,
        epoch=learner.since(state.epoch),
        queue=None if state.queue is None else state.queue.entries(state.partition.labels),
        bank=None if state.bank is None else Bank(state.bank, where, clusterings),
        partners=None if near is None else send(near, device),
        groupings=tuple(
            Grouping(labels_of(where, each.labels), each.prototypes, each.concentrations)
            for each in state.partition.groupings
        ),
        centres=_centres(learner, outputs, where, state),
        prepared={name: rows[where] for name, rows in state.prepared.items()},
    )


def _centres(learner: Learner, outputs: Outputs, where: Int[Tensor, " B"], state: State) -> tuple[CentreSet, ...]:
    """Return the sets of centres that are learnt, if there are any, and which of each the images belong to."""
    centres = learner.centres
    if centres is None or state.placed is None:
        return ()
    labels, last = centres.nearest(*outputs.projections), state.placed[where]
    earlier = torch.where(last < 0, labels, last)
    return tuple(
        CentreSet(now, before, *places)
        for now, before, *places in zip(
            centres.now(), centres.earlier(), labels.unbind(dim=1), earlier.unbind(dim=1), strict=True
        )
    )


def _labels(state: State, where: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
    assert state.partition is not None
    return labels_of(where, state.partition.labels)


def _gathered(passed: Outputs, batch: int) -> Outputs:
    """Return what all processes made of a batch, in float32."""
    pairs = passed.pairs()
    views = [view.float() for pair in pairs.values() for view in pair]
    further = {name: getattr(passed, name) for name in FURTHER if getattr(passed, name) is not None}
    views += [view.float() for view in further.values()]
    whole = gather_together([view.flatten(1) for view in views], batch)
    shaped = (each.view(-1, *view.shape[1:]) for each, view in zip(whole, views, strict=True))
    gathered = passed.with_pairs({name: (next(shaped), next(shaped)) for name in pairs})
    changes: dict[str, Any] = {name: next(shaped) for name in further}
    return replace(gathered, **changes)


def _remember(
    learner: Learner, outputs: Outputs, batch: Int[Tensor, " B"], where: Int[Tensor, " B"], state: State
) -> None:
    """Leave what the step made of its images where later steps and the E-step look for it."""
    if learner.centres is not None and state.placed is not None:
        labels = torch.stack([each.labels for each in outputs.centres], dim=1)
        state.placed.index_copy_(0, where, labels)
        learner.centres.move_favours(labels)
    if state.queue is None and state.streamed is None and state.bank is None:
        return
    made = outputs.targets if learner.method.embeds == "target" else outputs.projections
    of_image = made[:1] if learner.stage.pairs.partner == "neighbour" else made
    views = [F.normalize(view.detach(), dim=1) for view in of_image]
    if state.queue is not None:
        state.queue.push(torch.cat(views), where.repeat(len(views)))
    if state.bank is None and state.streamed is None:
        return
    both = F.normalize(sum(views[1:], start=views[0]), dim=1)
    if state.bank is not None and learner.stage.bank is not None:
        state.bank = moved(state.bank, where, both, learner.stage.bank.momentum)
    if state.streamed is not None:
        mine = share(learner.schedule.images)
        # Asked of the host's copy of the positions: how many are known decides a shape.
        known = send(((batch >= mine.start) & (batch < mine.stop)).nonzero()[:, 0], learner.device)
        state.streamed[where[known] - mine.start] = both[known]
