"""Tensors on their way to the device that computes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor of the host on a device, without waiting for what the device still has to do.

    A GPU fetches by itself only what lies in pinned memory; anything else the host has to wait for.
    """
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=device.type != "mps")


class PinnedRing:
    """Pinned buffers, used in turn, through which one thread sends tensors of bytes to a GPU beside its computing."""

    def __init__(self, device: torch.device, buffers: int) -> None:
        self._device, self._stream = device, torch.cuda.Stream(device)
        self._buffers = [torch.empty(0, dtype=torch.uint8) for _ in range(buffers)]
        self._left = [torch.cuda.Event() for _ in range(buffers)]  # when each buffer's last tensor has left it
        self._turn = 0

    def send(self, tensor: Tensor) -> Callable[[], Tensor]:
        """Send a tensor; return what gives it to whoever computes with it, who need not wait for it on the host."""
        turn, self._turn = self._turn, (self._turn + 1) % len(self._buffers)
        self._left[turn].synchronize()
        if self._buffers[turn].numel() < tensor.numel():
            self._buffers[turn] = torch.empty(tensor.numel(), dtype=torch.uint8, pin_memory=True)
        pinned = self._buffers[turn][: tensor.numel()].view(tensor.shape).copy_(tensor)
        with torch.cuda.stream(self._stream):
            sent = pinned.to(self._device, non_blocking=True)
            self._left[turn] = left = torch.cuda.Event()
            left.record(self._stream)

        def arrive() -> Tensor:
            computing = torch.cuda.current_stream(self._device)
            computing.wait_event(left)
            sent.record_stream(computing)
            return sent

        return arrive
