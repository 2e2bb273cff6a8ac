"""What a method is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from propos.networks import Parts
from propos.objectives import Objective


@dataclass(frozen=True)
class Term:
    """One objective in the sum, its weight and the epoch it starts at."""

    name: str
    objective: Objective
    weight: float
    starts: int = 0

    @property
    def reads_clusters(self) -> bool:
        """Whether it needs to know the images' clusters; then images without one take no part in it."""
        return bool(getattr(self.objective, "reads_clusters", False))


@dataclass(frozen=True)
class QueueSpec:
    """How many earlier target embeddings are kept, and whether the queue starts full of random unit vectors."""

    size: int
    random_start: bool = False


@dataclass(frozen=True)
class Method:
    """What is optimised and how; the training step reads it. Without terms there is nothing to train."""

    parts: Parts
    terms: tuple[Term, ...] = ()
    predictor_rate: float = 1.0  # the predictor's learning rate over everyone else's
    predictor_constant: bool = False  # whether the predictor's rate stays at its peak
    noise: float = 0.0  # σ of the noise on projections before the predictor
    noise_starts: int = 0
    queue: QueueSpec | None = None
    groupings: tuple[int, ...] = ()  # numbers of clusters the E-step also finds, from the end of the warm-up
    embeds: Literal["target", "online"] = "target"
