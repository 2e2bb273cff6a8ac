"""The stand-in for a GPU refuses and notes what a GPU would."""

import threading

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from helpers.gpu import GPU, Event, OnGpu, Stream, standing_in
from propos.distributed.transfer import PinnedRing, send

MIXED = {
    "a sum": lambda here, there: here + there,
    "a product": lambda here, there: here @ there.T,
    "a table": lambda here, there: torch.cat([here, there]),
    "a choice": lambda here, there: torch.where(here > 0, here, there),
    "an addition in place": lambda here, there: there.add_(here),
    "an index of the device": lambda here, there: there[here[0].long()],
    "rows by the host's numbers": lambda here, there: here.index_select(0, torch.tensor([0])),
    "a layer of the host": lambda here, there: F.linear(here, there),
    "numpy": lambda here, there: here.numpy(),
}
WAITING = {
    "a number": lambda here: here.sum().item(),
    "a list": lambda here: here.tolist(),
    "a condition": lambda here: bool((here > 0).all()),
    "places": lambda here: here.nonzero(),
    "a mask": lambda here: here[here > 0],
    "counts": lambda here: here.long().flatten().bincount(),
    "a result": lambda here: here.cpu(),
    "a constant": lambda here: here * torch.tensor([1.0, 2.0, 3.0], device=GPU),
    "a table sent": lambda here: here + torch.ones(3).to(GPU),
    "a table sent from memory that is not pinned": lambda here: here + torch.ones(3).to(GPU, non_blocking=True),
    "an index of the host": lambda here: here[torch.tensor([0, 1])],
}
FREE = {
    "a table sent from pinned memory": lambda here: here + send(torch.ones(3), GPU),
    "a scalar of the host": lambda here: here + torch.tensor(2.0),
    "a table made there": lambda here: here + torch.zeros(3, device=GPU),
    "a gradient": lambda here: (here * torch.ones(3, device=GPU, requires_grad=True)).sum().backward(),
}


@pytest.fixture
def gpu():
    with standing_in() as gpu:
        yield gpu


@pytest.fixture
def here(gpu):
    made = torch.arange(6.0).view(2, 3).to(GPU)
    gpu.waits.clear()
    return made


@pytest.mark.parametrize("kind", MIXED)
def test_host_and_device_do_not_mix(here, kind):
    with pytest.raises(RuntimeError):
        MIXED[kind](here, torch.ones(2, 3))


@pytest.mark.skipif(torch.version.cuda is None, reason="needs torch's build for CUDA: `make test-gpu`")
@pytest.mark.parametrize(
    "kind", [kind for kind in MIXED if kind != "an index of the device"]
)  # there only a GPU refuses
def test_torchs_own_fake_tensors_refuse_the_same(kind):
    with FakeTensorMode(), pytest.raises(RuntimeError):
        MIXED[kind](torch.empty((2, 3), device="cuda"), torch.ones(2, 3))


@pytest.mark.parametrize("kind", WAITING)
def test_waits_are_noted(gpu, here, kind):
    WAITING[kind](here)
    assert len(gpu.waits) == 1


@pytest.mark.parametrize("kind", FREE)
def test_nothing_else_waits(gpu, here, kind):
    FREE[kind](here)
    assert gpu.waits == []


def test_tensors_say_where_they_are(here):
    assert (here.device, here.is_cuda, here.double().device, here[0].device) == (GPU, True, GPU, GPU)
    assert here.to("cuda") is here
    assert type(here.cpu()) is torch.Tensor
    assert not isinstance(here.cpu(), OnGpu)


def test_autocast_computes_products_in_half_precision_and_sums_in_full(here):
    with torch.autocast("cuda", torch.bfloat16):
        assert (here @ here.T).dtype == torch.bfloat16
        assert (here @ here.T).sum().dtype == torch.float32
        with torch.autocast("cuda", enabled=False):
            assert (here @ here.T).dtype == torch.float32
    assert (here @ here.T).dtype == torch.float32


def test_who_does_not_wait_for_a_stream_reads_garbage(gpu):
    stream = torch.cuda.Stream(GPU)
    with torch.cuda.stream(stream):
        sent = torch.ones(3).pin_memory().to(GPU, non_blocking=True)
    assert sent.isnan().all()
    torch.cuda.current_stream().wait_stream(stream)
    assert sent.tolist() == [1, 1, 1]


def test_a_ring_of_pinned_buffers_sends_what_it_was_given_without_a_wait(gpu):
    ring = PinnedRing(GPU, 2)
    tables = [torch.full((3,), float(number)) for number in range(6)]
    arrived = [ring.send(table) for table in tables[:2]]
    for number, table in enumerate(tables[2:]):
        arrived.append(ring.send(table))
        assert arrived[number]().device == GPU
    assert gpu.waits == []
    assert [arrive().tolist()[0] for arrive in arrived] == [0, 1, 2, 3, 4, 5]


class SlowlyFilled:
    """What a stream copies to, until it is released."""

    def __init__(self):
        self.begun, self.released, self.filled = threading.Event(), threading.Event(), False

    def copy_(self, source):
        self.begun.set()
        self.released.wait()
        self.filled = True


def test_a_thread_waits_for_a_copy_that_another_thread_makes():
    """Else a step reads garbage once in a while: the thread that reads images waits for the same stream."""
    stream, into, found = Stream(), SlowlyFilled(), []
    stream.enqueue(into, None)
    copying = threading.Thread(target=stream.run)
    copying.start()
    into.begun.wait()
    waiting = threading.Thread(target=lambda: (stream.run(), found.append(into.filled)))
    waiting.start()
    waiting.join(timeout=0.1)  # without a lock it has ended by now
    into.released.set()
    waiting.join()
    copying.join()
    assert found == [True]


def test_an_event_covers_a_copy_that_was_asked_for_while_another_was_made():
    """Else a whole batch is garbage once in a while: the next images are read while a step waits for its own."""
    stream, event, later = Stream(), Event(), torch.zeros(1)

    class Asking:
        def copy_(self, source):
            stream.enqueue(later, torch.ones(1))
            event.record(stream)

    stream.enqueue(Asking(), None)
    stream.run(until=1)
    assert later == 0
    event.reach()
    assert later == 1
