"""The M-step: two views, the objectives, a gradient step, the moving average."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.data import Source
from propos.distributed import gather
from propos.methods import Term
from propos.objectives import Outputs
from propos.training.learner import Learner
from propos.training.seeds import generator


def maximization_step(
    learner: Learner,
    source: Source,
    positions: Int[Tensor, " A*B"],
    labels: Int[Tensor, " N"],
    epoch: int,
    step: int,
    streamed: Float[Tensor, "N D"] | None = None,
) -> Float[Tensor, " T"]:
    """Take one optimiser step on the images at these positions and return the loss of each of the method's terms.

    `step` counts over the whole run. Accumulated batches are each a batch of their own for batch norm and
    prototypes. The embeddings of the images are left in `streamed` where there is one.
    """
    rate = learner.schedule.learning_rate(step)
    for group in learner.optimiser.param_groups:
        group["lr"] = rate * group["rate"]
    learner.network.train()
    batches = positions.chunk(learner.schedule.accumulate)
    losses = torch.zeros(len(learner.method.terms), device=learner.device)
    for part, batch in enumerate(batches):
        places = batch.numpy()
        images = torch.from_numpy(source.batch(places)).to(learner.device, non_blocking=True)
        aspects = None if source.aspects is None else torch.from_numpy(source.aspects[places]).float()
        where = batch.to(labels.device)
        outputs = _outputs(learner, images, aspects, epoch, (step, part))
        losses += _backward(learner, outputs, labels[where], epoch) / len(batches)
        if streamed is not None:
            streamed[where] = _embeddings(learner, outputs)
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
    learner: Learner, images: Tensor, aspects: Float[Tensor, " B"] | None, epoch: int, when: tuple[int, int]
) -> Outputs:
    """Pass two views through the networks and gather what they make of the global batch, in float32."""
    config, device = learner.config, learner.device
    views = learner.views(images, generator(config.seed, "views", *when), aspects)
    noise = None
    if learner.method.noise and epoch >= learner.method.noise_starts:
        draw = torch.randn((2, len(images), config.network.dimension), generator=generator(config.seed, "noise", *when))
        first, second = (learner.method.noise * draw).to(device, non_blocking=True)
        noise = first, second
    mixed = config.train.precision != "float32"
    with torch.autocast(device.type, getattr(torch, config.train.precision), enabled=mixed):
        projections, predictions, targets = learner.network(views, noise)
    return Outputs(_gathered(projections), _gathered(predictions), _gathered(targets))


def _gathered(pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    return gather(pair[0].float()), gather(pair[1].float())


def _embeddings(learner: Learner, outputs: Outputs) -> Float[Tensor, "B D"]:
    """Return the direction between the two views' embeddings."""
    first, second = outputs.targets if learner.method.embeds == "target" else outputs.projections
    return F.normalize(F.normalize(first.detach(), dim=1) + F.normalize(second.detach(), dim=1), dim=1)
