"""One step of a method on real digits, up to its losses."""

import torch

from helpers.small import CPU, digits
from propos.runner.recipes import build_recipe
from propos.training import prepare
from propos.training.batch import StepBatch
from propos.training.context import BatchContext
from propos.training.e_step import Partition
from propos.training.learner import build_learner
from propos.training.state import State

SMALL = {
    "network.hidden": 32,
    "network.dimension": 16,
    "network.bn_groups": 1,
    "network.shuffle_bn": False,
    "train.batch_size": 64,
    "train.epochs": 4,
    "train.warmup": 1,
}


def learner_of(method, **settings):
    """Return a learner of a method for 200 digits; dots in keys are written as double underscores."""
    dotted = {key.replace("__", "."): value for key, value in settings.items()}
    source = digits()
    config = prepare(build_recipe("digits", method).with_settings({**SMALL, **dotted}), source)
    return build_learner(config, source, CPU)


def step_of(learner, labels, epoch=0, size=24, clustered=True):
    """Return the first images as a batch, and the context of a step, given the clusters of all images.

    With `clustered=False` they are images that are trained on but not clustered.
    """
    source = digits()
    source.unlabelled = digits()
    positions = torch.arange(size) + (0 if clustered else len(source))
    state = State(epoch=epoch, partition=Partition(labels, torch.zeros(0)))
    batch = StepBatch(learner.config, source, CPU, positions, learner.seed, (0, 0), labels)
    return batch, BatchContext.of(learner, state, size, (0, 0))


def losses_of(learner, batch, ctx):
    """Return the values of a method's loss terms."""
    return {name: float(loss.detach()) for name, loss in learner.method.losses(batch, ctx).items()}


def arrays(*tensors):
    """Return tensors as arrays of double precision, as the oracle wants them."""
    return [tensor.detach().double().numpy() for tensor in tensors]
