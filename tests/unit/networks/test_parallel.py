"""Passes at the same time: their outputs, gradients and buffers are those of passes one after the other."""

import copy
import threading

import pytest
import torch
from torch import nn

from helpers.small import CPU
from propos.networks import BatchNorm, pass_rows, pass_views, threads_of_a_pass


class Network(nn.Module):
    """Two convolutions with batch norm, and a layer that no pass uses."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(1, 8, 3), BatchNorm(8)
        self.second, self.unused = nn.Conv2d(8, 4, 3), nn.Linear(2, 2)

    def forward(self, images):
        return self.second(torch.relu(self.norm(self.first(images)))).mean(dim=(2, 3))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Network()


@pytest.fixture
def views():
    return list(torch.randn(3, 16, 1, 12, 12, generator=torch.Generator().manual_seed(1)))


def one_by_one(network, views):
    return [network(view) for view in views]


def at_once(network, views):
    with threads_of_a_pass(CPU):
        return pass_views(network, views, network)


def learned(network, outputs):
    """Return the gradients of a loss that treats the views differently, and the buffers."""
    sum((place + 1) * output.square().sum() for place, output in enumerate(outputs)).backward()
    gradients = {name: each.grad for name, each in network.named_parameters() if each.grad is not None}
    return {**gradients, **dict(network.named_buffers())}


def test_passes_are_those_made_one_by_one(network, views):
    other, expected = copy.deepcopy(network), one_by_one(network, views)
    outputs = at_once(other, views)
    torch.testing.assert_close(outputs, expected)
    expected, found = learned(network, expected), learned(other, outputs)
    assert "unused.weight" not in found
    torch.testing.assert_close(found, expected)


def test_a_network_passes_one_view_and_then_several_before_it_learns(network, views):
    other, expected = copy.deepcopy(network), one_by_one(network, views)
    outputs = [other(views[0]), *at_once(other, views[1:])]
    torch.testing.assert_close(learned(other, outputs), learned(network, expected))


def test_gradients_reach_the_inputs(network, views):
    inputs = [view.clone().requires_grad_() for view in views[:2]]
    torch.cat(one_by_one(network, inputs)).square().sum().backward()
    expected = [each.grad for each in inputs]
    inputs[1], found = views[1], inputs[0].detach().clone().requires_grad_()
    torch.cat(at_once(network, [found, inputs[1]])).square().sum().backward()  # only one of them wants a gradient
    torch.testing.assert_close(found.grad, expected[0])


def test_a_function_of_a_module_learns_too(network, views):
    outputs = pass_views(lambda view: 2 * network(view), views, lambda view: 2 * network(view))
    found = learned(network, outputs)["first.weight"].clone()
    network.zero_grad()
    torch.testing.assert_close(
        found, learned(network, [2 * each for each in one_by_one(network, views)])["first.weight"]
    )


def test_hooks_see_the_views_in_order(network, views):
    seen = []
    network.second.register_forward_hook(lambda *passed: seen.append(passed[2].mean(dim=(2, 3))))
    for _ in range(20):
        torch.testing.assert_close(at_once(network, views), seen[-3:], rtol=0, atol=0)


def test_a_frozen_network_gives_no_gradient_and_the_mode_holds_on_the_threads(network, views):
    network.requires_grad_(False)
    assert not any(output.requires_grad for output in at_once(network, views))
    network.requires_grad_(True)
    with torch.no_grad():
        assert not any(output.requires_grad for output in at_once(network, views))


@pytest.mark.parametrize(("threads", "passing"), [(1, 1), (2, 2)])
def test_as_many_views_pass_at_once_as_there_are_threads(network, views, threads, passing):
    """Else a process that was given one core, as by torchrun, takes two."""
    seen, before = [], torch.get_num_threads()
    together = threading.Barrier(passing)

    def passed(view):
        seen.append(threading.current_thread())
        together.wait(timeout=60)
        return network(view)

    torch.set_num_threads(threads)
    try:
        with threads_of_a_pass(CPU):
            learned(network, pass_views(network, views[:2], passed))
    finally:
        torch.set_num_threads(before)
    assert (seen == [threading.current_thread()] * 2) == (threads == 1)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_cores_changes_no_bit(network, views, threads):
    def made(count):
        other, before = copy.deepcopy(network), torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            with threads_of_a_pass(CPU):
                return learned(other, pass_views(other, views, other))
        finally:
            torch.set_num_threads(before)

    torch.testing.assert_close(made(threads), made(2), rtol=0, atol=0)


def test_the_halves_of_a_batch_give_its_outputs(network, views):
    network.eval()
    made = pass_rows(network, views[0][:15], lambda rows: (network(rows), None))
    torch.testing.assert_close(made, (network(views[0][:15]).detach(), None))
    assert not made[0].requires_grad
    torch.testing.assert_close(pass_rows(network, views[0][:1], network), network(views[0][:1]).detach())


def test_an_error_in_a_pass_is_raised(network, views):
    with pytest.raises(RuntimeError, match="size"):
        at_once(network, [views[0], views[1][:, :, :2, :2]])
    assert network.norm.num_batches_tracked == 0
