"""The number of steps, and the learning rate and momentum at each."""

from __future__ import annotations

import math
from dataclasses import dataclass

from propos.config import NetworkSettings, TrainSettings

TENTH = 0.1  # the factor of the rate at each milestone


@dataclass(frozen=True)
class Schedule:
    """The steps of a run over a number of images, and the learning rate and target momentum at each."""

    settings: TrainSettings
    network: NetworkSettings
    images: int
    unlabelled: int = 0  # images that are trained on but not clustered
    left_out: int = 0  # number of excluded images

    @property
    def drawn(self) -> int:
        """The number of images in an epoch."""
        return self.images - self.left_out

    @property
    def batch(self) -> int:
        """Images in a batch: all of them when there are fewer than the batch size."""
        return min(self.settings.batch_size, self.drawn)

    @property
    def accumulate(self) -> int:
        """Batches in an optimiser step."""
        return min(self.settings.accumulate, self.drawn // self.batch)

    @property
    def steps(self) -> int:
        """Optimiser steps in an epoch; images that do not fill the last one are left for another epoch."""
        return self.drawn // (self.batch * self.accumulate) + self.unlabelled_steps

    @property
    def unlabelled_steps(self) -> int:
        """The number of steps on images that are trained on but not clustered; they come first in an epoch."""
        return self.unlabelled // (self.batch * self.accumulate)

    @property
    def peak(self) -> float:
        """The learning rate when the warm-up ends."""
        return self.settings.lr * self.batch * self.accumulate / 256

    def learning_rate(self, step: int) -> float:
        """Return the learning rate at a step of the stage: a linear warm-up, then the schedule."""
        warmup = self.settings.warmup * self.steps
        if step < warmup:
            by_epoch = self.settings.schedule == "cosine-by-epoch"
            return (self._after_warmup(warmup) if by_epoch else self.peak) * (step + 1) / warmup
        return self._after_warmup(step)

    def _after_warmup(self, step: int) -> float:
        """Return the learning rate at a step after the warm-up."""
        warmup, total = self.settings.warmup * self.steps, self.settings.epochs * self.steps
        match self.settings.schedule:
            case "constant":
                return self.peak
            case "steps":
                passed = sum(step >= round(share * total) for share in self.settings.milestones)
                return self.peak * TENTH**passed
            case "cosine":
                progress = (step - warmup + 1) / max(1, total - warmup)
            case "cosine-of-all":
                progress = (step - warmup + 1) / total
            case "cosine-by-epoch":
                progress = step // self.steps / self.settings.epochs
        return self.peak * (1 + math.cos(math.pi * min(1.0, progress))) / 2

    def momentum(self, step: int) -> float:
        """Return the target's momentum at a step: constant, or rising to 1 along a cosine."""
        if self.network.momentum_schedule == "constant":
            return self.network.momentum
        progress = step / (self.settings.epochs * self.steps)
        return 1 - (1 - self.network.momentum) * (math.cos(math.pi * progress) + 1) / 2
