"""The state of a run between two steps."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from propos.training.e_step import Partition, unassigned
from propos.training.health import Record
from propos.training.learner import Learner


@dataclass
class State:
    """All that changes during a run besides the method and its optimiser."""

    stage: int = 0  # the present one
    epoch: int = 0
    step: int = 0  # within the epoch
    measures: Record | None = None  # of the E-step at the start of this epoch, empty if it had none; None before it
    partition: Partition | None = None
    streamed: Float[Tensor, "n D"] | None = None  # the last embedding of each image of this process's share
    losses: dict[str, Float[Tensor, " S"]] = field(default_factory=dict)  # of this epoch's steps; 0: no such term
    counts: dict[str, int] = field(default_factory=dict)  # of this epoch's steps that had a term
    seconds: dict[str, float] = field(default_factory=dict)  # spent in this epoch, by phase
    history: list[Record] = field(default_factory=list)

    def spend(self, phase: str, seconds: float) -> None:
        """Add time to a phase of this epoch."""
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def record(self, losses: dict[str, Float[Tensor, ""]], steps: int) -> None:
        """Record the losses of a step."""
        for name, loss in losses.items():
            if name not in self.losses:
                self.losses[name] = torch.zeros(steps, device=loss.device)
            self.losses[name][self.step] = loss
            self.counts[name] = self.counts.get(name, 0) + 1

    def mean_losses(self) -> dict[str, float]:
        """Return each term's mean over the steps of this epoch that had it."""
        return {name: float(each.cpu().double().sum()) / self.counts[name] for name, each in self.losses.items()}

    def first_bad_step(self) -> int | None:
        """Return the first step of this epoch with a loss that is not finite."""
        if not self.losses:
            return None
        done = torch.stack(list(self.losses.values()))[:, : self.step]
        bad = (~torch.isfinite(done)).any(dim=0).nonzero()
        return int(bad[0]) if len(bad) else None

    @property
    def epoch_open(self) -> bool:
        """Whether the E-step at the start of this epoch is done, so that its steps follow."""
        return self.measures is not None

    @property
    def not_started(self) -> bool:
        """Whether the run has not started yet."""
        return (self.epoch, self.step, self.epoch_open) == (0, 0, False)

    def next_epoch(self) -> None:
        """Move to the start of the next epoch."""
        self.epoch, self.step, self.measures = self.epoch + 1, 0, None
        self.losses, self.counts, self.seconds = {}, {}, {}


def first_state(learner: Learner) -> State:
    """Return the start of a run."""
    # If K is to be chosen, training starts without an E-step.
    suggested = learner.config.suggest.range is not None
    return State(partition=unassigned(learner.schedule.images, learner.device) if suggested else None)
