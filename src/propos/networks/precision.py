"""Automatic mixed precision."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Return a context of mixed precision; torch chooses which operations stay in float32."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, getattr(torch, precision))


def full_precision(device: torch.device) -> AbstractContextManager[object]:
    """Return a context without mixed precision, also inside one with it."""
    if not torch.amp.is_autocast_available(device.type):  # such as meta, which has shapes only
        return nullcontext()
    return torch.autocast(device.type, enabled=False)
