"""How many steps there are, and the rates at each."""

from __future__ import annotations

import math
from dataclasses import dataclass

from propos.config import NetworkSettings, TrainSettings

TENTH = 0.1  # of the rate is left from each milestone on


@dataclass(frozen=True)
class Schedule:
    """The steps of a run over a number of images, and the learning rate and target momentum at each."""

    settings: TrainSettings
    network: NetworkSettings
    images: int
    unlabelled: int = 0  # images that are trained on but not clustered
    left_out: int = 0  # of the images, those that take no part

    @property
    def drawn(self) -> int:
        """Images of which an epoch is made."""
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
        """Those of them, the first of the epoch, that see images which are trained on but not clustered."""
        return self.unlabelled // (self.batch * self.accumulate)

    @property
    def peak(self) -> float:
        """The learning rate when the warm-up ends."""
        return self.settings.lr * self.batch * self.accumulate / 256

    def learning_rate(self, step: int) -> float:
        """Return the rate at a step counted over the whole run: a linear warm-up, then what the schedule says."""
        warmup = self.settings.warmup * self.steps
        if step < warmup:
            by_epoch = self.settings.schedule == "cosine-by-epoch"
            return (self._after_warmup(warmup) if by_epoch else self.peak) * (step + 1) / warmup
        return self._after_warmup(step)

    def _after_warmup(self, step: int) -> float:
        """Return the rate at a step that is no longer part of the warm-up."""
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
