"""A method in one of its later stages."""

from helpers.small import CPU, digits, quick_config
from propos.training.e_step import unassigned
from propos.training.learner import at_stage, build_learner
from propos.training.stage_setup import begin_epoch
from propos.training.state import first_state


def opened(method, number=1, **settings):
    """Return a learner at the start of a stage, the images, and a state with the stage's tables."""
    source = digits()
    config = quick_config(source, method=method, **{"train__epochs": 6, **settings})
    learner = at_stage(build_learner(config, source, CPU), number)
    state = first_state(learner)
    state.epoch, state.partition = learner.epochs.start, unassigned(len(source), CPU)
    begin_epoch(learner, source, state)
    return learner, source, state


def next_epoch(learner, source, state):
    """Begin the next epoch of the stage."""
    state.epoch += 1
    begin_epoch(learner, source, state)
