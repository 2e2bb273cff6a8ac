"""Transfer of tensors to the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor of the host to a device, without waiting for the device.

    A GPU copies asynchronously only from pinned memory; for other memory the host has to wait.
    """
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=device.type != "mps")


def send_together(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Copy several small tensors of the host to a device as one message of bytes, as `send` does."""
    if device.type == "cpu":
        return list(tensors)
    # The widest first, so that each starts at a multiple of its width.
    places = sorted(range(len(tensors)), key=lambda place: -tensors[place].itemsize)
    sent = send(torch.cat([tensors[place].contiguous().view(-1).view(torch.uint8) for place in places]), device)
    pieces = sent.split([tensors[place].nbytes for place in places])
    made = {place: piece.view(tensors[place].dtype) for place, piece in zip(places, pieces, strict=True)}
    return [made[place].view(tensor.shape) for place, tensor in enumerate(tensors)]


class StagingBuffer:
    """A growing buffer of bytes on the host, in pinned memory where there is a GPU, that holds one tensor at a time."""

    def __init__(self) -> None:
        self._bytes = torch.empty(0, dtype=torch.uint8)

    def hold(self, tensor: Tensor) -> Tensor:
        """Copy a tensor into the buffer and return the copy, of the same type and shape; it overwrites the last one."""
        if self._bytes.numel() < tensor.nbytes:
            self._bytes = torch.empty(tensor.nbytes, dtype=torch.uint8, pin_memory=torch.cuda.is_available())
        return self._bytes[: tensor.nbytes].view(tensor.dtype).view(tensor.shape).copy_(tensor)


class PinnedRing:
    """Pinned buffers, used in turn, through which one thread sends tensors to a GPU while it computes."""

    def __init__(self, device: torch.device, buffers: int) -> None:
        self._device, self._stream = device, torch.cuda.Stream(device)
        self._buffers = [StagingBuffer() for _ in range(buffers)]
        self._left = [torch.cuda.Event() for _ in range(buffers)]  # when each buffer's last tensor has left it
        self._turn = 0

    def send(self, tensor: Tensor) -> Callable[[], Tensor]:
        """Send a tensor; return a function that returns it on the device without blocking the host."""
        turn, self._turn = self._turn, (self._turn + 1) % len(self._buffers)
        self._left[turn].synchronize()
        held = self._buffers[turn].hold(tensor)
        with torch.cuda.stream(self._stream):
            sent = held.to(self._device, non_blocking=True)
            self._left[turn] = left = torch.cuda.Event()
            left.record(self._stream)

        def arrive() -> Tensor:
            computing = torch.cuda.current_stream(self._device)
            computing.wait_event(left)
            sent.record_stream(computing)
            return sent

        return arrive
