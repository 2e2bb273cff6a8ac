"""Tensors on their way to a GPU arrive as they were, whatever their type."""

from contextlib import nullcontext

import pytest
import torch

from propos.distributed.transfer import PinnedRing, StagingBuffer

FEATURES = torch.tensor([[0.5, -1.7, 3.2], [1e-30, -0.0, 7.0]])
IMAGES = torch.arange(24, dtype=torch.uint8).view(2, 3, 2, 2)


class NoWaits:
    """Stands in for a CUDA stream or event where torch has none: everything has happened already."""

    def __init__(self, device=None):
        self.device = device

    def synchronize(self):
        pass

    def record(self, stream):
        pass

    def wait_event(self, event):
        pass


@pytest.fixture
def ring(monkeypatch):
    """A ring whose GPU is the CPU."""
    monkeypatch.setattr(torch.cuda, "Stream", NoWaits)
    monkeypatch.setattr(torch.cuda, "Event", NoWaits)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", NoWaits)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: None)
    return PinnedRing(torch.device("cpu"), 3)


def test_images_and_features_pass_the_ring_as_they_are(ring):
    sent = [IMAGES, FEATURES, FEATURES[:1] * 2, IMAGES[:1], FEATURES.double()]
    for tensors in (sent[:3], sent[2:]):  # as many are on their way as there are buffers
        for tensor, arrive in [(tensor, ring.send(tensor)) for tensor in tensors]:
            assert arrive().dtype == tensor.dtype
            assert torch.equal(arrive(), tensor)


@pytest.mark.parametrize("tensor", [FEATURES, IMAGES, IMAGES.transpose(1, 3), torch.empty(0, 3), torch.tensor([2**40])])
def test_a_staged_tensor_is_the_same(tensor):
    held = StagingBuffer().hold(tensor)
    assert held.dtype == tensor.dtype
    assert torch.equal(held, tensor)
    assert held.is_contiguous()  # a GPU fetches one block of memory by itself


def test_a_buffer_grows_and_is_used_again():
    buffer = StagingBuffer()
    assert torch.equal(buffer.hold(IMAGES), IMAGES)
    large = torch.arange(100.0).view(10, 10)
    first = buffer.hold(large)
    assert torch.equal(first, large)
    second = buffer.hold(FEATURES)
    assert torch.equal(second, FEATURES)
    assert second.data_ptr() == first.data_ptr()
