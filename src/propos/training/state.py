"""Where a run stands between two steps."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.training.bank import first_bank
from propos.training.expectation import Partition, unassigned
from propos.training.health import Record
from propos.training.learner import Learner
from propos.training.queue import Memory


@dataclass
class State:
    """All that changes during a run, the learner's weights and momenta aside."""

    stage: int = 0  # the one that is open
    epoch: int = 0
    step: int = 0  # within the epoch
    opening: Record | None = None  # what the E-step that opens this epoch measured; None before it
    partition: Partition | None = None
    streamed: Float[Tensor, "n D"] | None = None  # the last embedding of each image of this process's share
    queue: Memory | None = None
    bank: Float[Tensor, "N D"] | None = None  # of every image, on every process
    placed: Int[Tensor, "N S"] | None = None  # the centre of each set that every image was last put to; -1: none yet
    prepared: dict[str, Tensor] = field(default_factory=dict)  # what the stage computed of all images when it opened
    neighbours: Int[Tensor, "N count"] | None = None  # those of `prepared` on the host, which reads their images
    losses: Float[Tensor, "S T"] | None = None  # of this epoch's steps so far, by term
    seconds: dict[str, float] = field(default_factory=dict)  # spent in this epoch, by phase
    history: list[Record] = field(default_factory=list)

    def spend(self, phase: str, seconds: float) -> None:
        """Add time to a phase of this epoch."""
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def first_bad_step(self) -> int | None:
        """Return the first step of this epoch whose loss is not finite."""
        if self.losses is None:
            return None
        bad = (~torch.isfinite(self.losses[: self.step])).any(dim=1).nonzero()
        return int(bad[0]) if len(bad) else None

    @property
    def fresh(self) -> bool:
        """Whether nothing has happened yet."""
        return (self.epoch, self.step, self.opening) == (0, 0, None)

    def next_epoch(self) -> None:
        """Move to the start of the next epoch."""
        self.epoch, self.step, self.opening, self.losses, self.seconds = self.epoch + 1, 0, None, None, {}


def first_state(learner: Learner) -> State:
    """Return the start of a run."""
    config = learner.config
    # Where K is suggested, training begins before there is an E-step.
    partition = None if config.suggest.range is None else unassigned(learner.schedule.images, learner.device)
    placed = first_placed(learner)
    return State(partition=partition, queue=first_queue(learner), bank=first_bank(learner), placed=placed)


def first_queue(learner: Learner) -> Memory | None:
    """Return the queue with which a stage begins, if it has one."""
    spec = learner.stage.queue
    return None if spec is None else Memory.start(spec, learner.dimension, learner.seed, learner.device)


def first_placed(learner: Learner) -> Int[Tensor, "N S"] | None:
    """Return where images are among centres that are learnt, if there are any: nowhere yet."""
    centres = learner.centres
    if centres is None:
        return None
    return torch.full((sum(learner.images[:2]), len(centres.sets.sizes)), -1, device=learner.device)
