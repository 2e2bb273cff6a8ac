"""Parameters in groups: what decays, and what does not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import nn


def exempt_vectors(parameters: Iterable[nn.Parameter], *, adapts: bool) -> list[dict[str, Any]]:
    """Return weights, and biases and batch norm (all that has one dimension), which are not to decay.

    With `adapts`, for LARS, the latter do not adapt either.
    """
    every = list(parameters)
    exempt = {"weight_decay": 0.0, **({"adapt": False} if adapts else {})}
    return [
        {"params": [parameter for parameter in every if parameter.ndim > 1]},
        {"params": [parameter for parameter in every if parameter.ndim <= 1], **exempt},
    ]
