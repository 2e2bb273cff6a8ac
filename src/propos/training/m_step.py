"""The M-step: a method's losses of a batch, a gradient step, the moving averages."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.data import Source
from propos.distributed import average_gradients, share
from propos.distributed.transfer import send
from propos.networks import BatchNorm, EmaCopy, threads_of_a_pass
from propos.training.batch import StepBatch
from propos.training.context import BatchContext
from propos.training.learner import Learner, is_part, trained_parameters
from propos.training.optimiser import drop_early_gradients, set_rates
from propos.training.state import State


def m_step(
    learner: Learner, source: Source, positions: Int[Tensor, " A*B"], state: State
) -> dict[str, Float[Tensor, ""]]:
    """Take one optimiser step on the images at these positions and return the loss terms.

    Batches that accumulate are each a batch of their own for batch norm and prototypes.
    """
    with threads_of_a_pass(learner.device):
        return _step(learner, source, positions, state)


def _step(
    learner: Learner, source: Source, positions: Int[Tensor, " A*B"], state: State
) -> dict[str, Float[Tensor, ""]]:
    assert learner.optimiser is not None, "a method that is not trained takes no step"
    assert state.partition is not None
    step = learner.stage_epoch(state.epoch) * learner.schedule.steps + state.step
    set_rates(learner.optimiser, learner.schedule, step)
    set_modes(learner)
    batches = positions.chunk(learner.schedule.accumulate)
    sums: dict[str, Tensor] = {}
    learns = False  # whether any loss of the step has a gradient
    for part, chosen in enumerate(batches):
        when = step, part
        batch = StepBatch(learner.config, source, learner.device, chosen, learner.seed, when, state.partition.labels)
        ctx = BatchContext.of(learner, state, len(chosen), when)
        losses = learner.method.losses(batch, ctx)
        last = part == len(batches) - 1
        with (
            average_gradients(trained_parameters(learner.method), running_statistics(learner))
            if last
            else nullcontext()
        ):
            total = sum(losses.values(), start=torch.zeros((), device=learner.device))
            if total.requires_grad:
                learns = True
                learner.scaler.scale(total / len(batches)).backward()
        for action in ctx.later:
            action()
        _keep_embeddings(learner, ctx, batch, state)
        for name, loss in losses.items():
            sums[name] = sums.get(name, 0.0) + loss.detach() / len(batches)
    if learns:
        drop_early_gradients(learner.optimiser, learner.schedule, step)
        learner.scaler.step(learner.optimiser)
        learner.scaler.update()
        learner.optimiser.zero_grad(set_to_none=True)
    learner.method.after_step(BatchContext.of(learner, state, when=(step, 0)))
    return sums


def set_modes(learner: Learner) -> None:
    """Set training mode for the modules that the stage trains and their moving averages, eval mode for all others."""
    method, trains = learner.method, learner.stage.trains
    method.train()
    if trains is None:
        return
    for name, module in method.named_modules():
        if not is_part(name, trains) and not any(part.startswith(f"{name}.") or not name for part in trains):
            module.training = False
    for module in method.modules():
        if isinstance(module, EmaCopy):
            module.match_modes()


def running_statistics(learner: Learner) -> list[Tensor]:
    """Return the buffers of batch norm in training mode, which are averaged over processes after a step."""
    norms = [module for module in learner.method.modules() if isinstance(module, BatchNorm) and module.training]
    return [norm.get_buffer(name) for norm in norms for name in ("running_mean", "running_var")]


def _keep_embeddings(learner: Learner, ctx: BatchContext, batch: StepBatch, state: State) -> None:
    """Store the embeddings that a step reported, if E-steps use them."""
    if state.streamed is None or not ctx.embedded:
        return
    local, positions = share(learner.schedule.images), batch.positions
    # From the host's copy of the positions, since their number determines a shape.
    known = send(((positions >= local.start) & (positions < local.stop)).nonzero()[:, 0], learner.device)
    state.streamed[batch.images[known] - local.start] = ctx.mean_embeddings()[known]
