"""Tensors on their way to the device that computes."""

from __future__ import annotations

import torch
from torch import Tensor


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor of the host on a device, without waiting for what the device still has to do.

    A GPU fetches by itself only what lies in pinned memory; anything else the host has to wait for.
    """
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=device.type != "mps")
