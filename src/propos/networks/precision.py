"""Half precision for what may have it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Compute in a precision within the block: torch chooses which operations keep float32."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, getattr(torch, precision))


def full_precision(device: torch.device) -> AbstractContextManager[object]:
    """Compute in the precision of the tensors within the block, even inside one of half precision."""
    if not torch.amp.is_autocast_available(device.type):  # such as meta, which has shapes alone
        return nullcontext()
    return torch.autocast(device.type, enabled=False)
