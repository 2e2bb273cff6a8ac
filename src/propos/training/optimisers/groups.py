"""Groups of parameters with and without weight decay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import nn


def exempt_vectors(parameters: Iterable[nn.Parameter], *, adapts: bool) -> list[dict[str, Any]]:
    """Return two groups: weights, and biases and batch norm (all one-dimensional parameters), without weight decay.

    With `adapts`, for LARS, the second group has no adaptive rates either.
    """
    every = list(parameters)
    exempt = {"weight_decay": 0.0, **({"adapt": False} if adapts else {})}
    return [
        {"params": [parameter for parameter in every if parameter.ndim > 1]},
        {"params": [parameter for parameter in every if parameter.ndim <= 1], **exempt},
    ]
