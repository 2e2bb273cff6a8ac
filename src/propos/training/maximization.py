"""The M-step: two views, the objectives, a gradient step, the moving average."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.data import Source
from propos.distributed import gather_together, mean_over_processes, share
from propos.methods import Term
from propos.objectives import Grouping, Outputs
from propos.training.learner import Learner
from propos.training.optimiser import set_rates
from propos.training.queue import labels_of
from propos.training.seeds import generator
from propos.training.state import State


def maximization_step(
    learner: Learner, source: Source, positions: Int[Tensor, " A*B"], state: State
) -> Float[Tensor, " T"]:
    """Take one optimiser step on the images at these positions and return the loss of each of the method's terms.

    Accumulated batches are each a batch of their own for batch norm and prototypes. What the step makes of its
    images is left in the state's queue and streamed embeddings, where there are any.
    """
    step = state.epoch * learner.schedule.steps + state.step
    set_rates(learner.optimiser, learner.schedule, step)
    learner.network.train()
    batches = positions.chunk(learner.schedule.accumulate)
    losses = torch.zeros(len(learner.method.terms), device=learner.device)
    for part, batch in enumerate(batches):
        where = batch.to(learner.device)
        outputs = _outputs(learner, source, batch, where, state, (step, part))
        losses += _backward(learner, outputs, _labels(state, where), state.epoch) / len(batches)
        _remember(learner, outputs, where, state)
    mean_over_processes(learner.varying())
    learner.scaler.step(learner.optimiser)
    learner.scaler.update()
    learner.optimiser.zero_grad(set_to_none=True)
    learner.network.move_target(learner.schedule.momentum(step))
    return losses


def active_terms(learner: Learner, epoch: int) -> list[tuple[int, Term]]:
    """Return the terms that count at an epoch, with their places."""
    return [(place, term) for place, term in enumerate(learner.method.terms) if epoch >= term.starts and term.weight]


def _backward(learner: Learner, outputs: Outputs, labels: Int[Tensor, " B"], epoch: int) -> Float[Tensor, " T"]:
    """Add the gradients of one batch and return the loss of each term."""
    losses = torch.zeros(len(learner.method.terms), device=learner.device)
    total = torch.zeros((), device=learner.device)
    for place, term in active_terms(learner, epoch):
        loss = term.objective(outputs, labels)
        losses[place] = loss.detach()
        total = total + term.weight * loss
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
    """Pass two views through the networks and gather what they make of the global batch, in float32."""
    config, device, method = learner.config, learner.device, learner.method
    part, images, aspects = share(len(batch)), *_images(source, batch)
    draw = generator(config.seed, "views", *when)
    views = learner.views(images.to(device, non_blocking=True), draw, aspects, (len(batch), part))
    noise, shuffle = None, None
    if method.noise and state.epoch >= method.noise_starts:
        shape = 2, len(batch), config.network.dimension
        drawn = torch.randn(shape, generator=generator(config.seed, "noise", *when))
        first, second = (method.noise * drawn[:, part]).to(device, non_blocking=True)
        noise = first, second
    if config.network.shuffle_bn and config.network.bn_groups > 1:
        shuffle = torch.randperm(len(batch), generator=generator(config.seed, "shuffle", *when)).to(device)
    mixed = config.train.precision != "float32"
    with torch.autocast(device.type, getattr(torch, config.train.precision), enabled=mixed):
        passed = learner.network(views, noise, len(batch), shuffle)
    pairs = _gathered([pair for pair in passed if pair is not None], len(batch))
    assert state.partition is not None
    return Outputs(
        projections=pairs[0],
        predictions=pairs[1],
        targets=pairs[2],
        assignments=pairs[3] if len(pairs) > 3 else None,
        queue=None if state.queue is None else state.queue.entries(state.partition.labels),
        groupings=tuple(
            Grouping(labels_of(where, each.labels), each.prototypes, each.concentrations)
            for each in state.partition.groupings
        ),
    )


def _images(source: Source, batch: Int[Tensor, " B"]) -> tuple[Tensor, Float[Tensor, " B"] | None]:
    """Read this process's images of a batch, and all true shapes; positions past the clustered name the others."""
    places = batch.numpy()
    if source.unlabelled is not None and places[0] >= len(source):
        source, places = source.unlabelled, places - len(source)
    aspects = None if source.aspects is None else torch.from_numpy(source.aspects[places]).float()
    return torch.from_numpy(source.batch(places[share(len(places))])), aspects


def _labels(state: State, where: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
    assert state.partition is not None
    return labels_of(where, state.partition.labels)


def _gathered(pairs: Sequence[tuple[Tensor, Tensor]], batch: int) -> list[tuple[Tensor, Tensor]]:
    """Return what all processes made of a batch, in float32."""
    whole = gather_together([view.float() for pair in pairs for view in pair], batch)
    return list(zip(whole[::2], whole[1::2], strict=True))


def _remember(learner: Learner, outputs: Outputs, where: Int[Tensor, " B"], state: State) -> None:
    """Leave what the step made of its images where later steps and the E-step look for it."""
    if state.queue is None and state.streamed is None:
        return
    made = outputs.targets if learner.method.embeds == "target" else outputs.projections
    first, second = (F.normalize(view.detach(), dim=1) for view in made)
    if state.queue is not None:
        state.queue.push(torch.cat([first, second]), where.repeat(2))
    if state.streamed is not None:
        mine = share(learner.schedule.images)
        known = (where >= mine.start) & (where < mine.stop)
        state.streamed[where[known] - mine.start] = F.normalize(first + second, dim=1)[known]
