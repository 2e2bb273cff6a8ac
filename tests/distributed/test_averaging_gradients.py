"""Gradients are averaged over processes while the backward pass makes them."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

from helpers.processes import run_on
from propos import distributed
from propos.distributed import averaging

WIDTH, ROWS, WORLD = 16, 12, 3


def network():
    """Return four layers in line, and a head that no loss reads."""
    torch.manual_seed(0)
    return nn.ModuleDict(
        {"layers": nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(4)]), "unused": nn.Linear(WIDTH, 2)}
    )


def rows():
    return torch.randn(2, ROWS, WIDTH, generator=torch.Generator().manual_seed(1))


def passed(net, images, weight):
    return weight * net["layers"](images).square().mean()


def on_a_share(rank, world):
    """Return means of accumulated gradients and of a buffer, and when messages left during the last backward pass."""
    averaging.BUCKET_BYTES = 4 * (WIDTH + 1) * WIDTH + 64  # a layer's, and a little more
    net, buffer = network(), torch.full((3,), float(rank))
    events = []
    send = dist.all_reduce

    def noted(*given, **options):
        events.append("sent")
        return send(*given, **options)

    dist.all_reduce = noted
    first, second = (part[distributed.share(ROWS)] for part in rows())
    found = []
    for _ in range(2):
        net.zero_grad(set_to_none=True)
        passed(net, first, 1.0).backward()
        second.requires_grad_()
        with distributed.average_gradients(list(net["layers"].parameters()), [buffer]):
            loss = passed(net, second, 2.0)
            second.register_hook(lambda _: events.append("pass ended"))
            loss.backward()
        found.append({name: parameter.grad.clone() for name, parameter in net["layers"].named_parameters()})
    dist.all_reduce = send
    with distributed.average_gradients(
        list(net.parameters())
    ):  # the unused head's bucket is first in line and never fills
        passed(net, second.detach(), 1.0).backward()
    assert net["unused"].weight.grad is None
    return {
        "first": found[0],
        "second": found[1],
        "buffer": buffer,
        "sent before the end": events.index("pass ended"),
        "sent": events.count("sent"),
        "with an unused head": net["layers"][0].weight.grad,
    }


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    return run_on(WORLD, on_a_share, tmp_path_factory.mktemp("averaged"))


def test_the_mean_is_that_of_the_whole_batch(processes):
    net = network()
    first, second = rows()
    (passed(net, first, 1.0) + passed(net, second, 2.0)).backward()
    for name, parameter in net["layers"].named_parameters():
        for process in processes:
            torch.testing.assert_close(process["first"][name], parameter.grad)
    assert all(torch.equal(process["buffer"], torch.full((3,), 1.0)) for process in processes)


def test_all_processes_and_all_steps_get_the_same_bits(processes):
    for process in processes:
        for name, gradient in processes[0]["first"].items():
            assert torch.equal(process["first"][name], gradient)
            assert torch.equal(process["second"][name], gradient)


def test_buckets_leave_before_the_pass_has_ended_and_the_last_one_with_the_rest(processes):
    # A bucket a layer: three of four leave during the pass, the fourth with the buffer.
    assert [process["sent before the end"] for process in processes] == [3, 3, 3]
    assert [process["sent"] for process in processes] == [8, 8, 8]


def test_what_no_loss_reads_has_no_gradient_and_holds_nothing_up(processes):
    net = network()
    first, second = rows()
    (passed(net, first, 1.0) + 3 * passed(net, second, 1.0)).backward()
    for process in processes:
        torch.testing.assert_close(process["with an unused head"], net["layers"][0].weight.grad)
