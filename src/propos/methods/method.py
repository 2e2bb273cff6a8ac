"""What a method is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from propos.objectives import Objective


@dataclass(frozen=True)
class Term:
    """One objective in the sum, its weight and the epoch it starts at."""

    name: str
    objective: Objective
    weight: float
    starts: int = 0


@dataclass(frozen=True)
class Method:
    """What is optimised and how; the training step reads it."""

    terms: tuple[Term, ...]
    predictor_rate: float  # the predictor's learning rate over everyone else's
    noise: float = 0.0  # σ of the noise on projections before the predictor
    noise_starts: int = 0
    embeds: Literal["target", "online"] = "target"
