import copy
import math

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from propos.common.errors import InputError
from propos.training.optimisers import Lars, exempt_vectors


def parameter(*values):
    return nn.Parameter(torch.tensor(values, dtype=torch.float64))


def give(gradient, to):
    to.grad = torch.tensor(gradient, dtype=to.dtype)


def oracle(weights, gradients, lr, momentum, decay, trust, adapt):
    """The update rule, a vector and a step at a time."""
    velocity = np.zeros_like(weights)
    for gradient in gradients:
        update = gradient + decay * weights
        length, size = math.sqrt((weights**2).sum()), math.sqrt((update**2).sum())
        if adapt and length and size:
            update = update * (trust * length / size)
        velocity = momentum * velocity + update
        weights = weights - lr * velocity
    return weights


def test_two_steps_by_hand():
    weights = parameter(3.0, 4.0)
    optimiser = Lars([weights], lr=2.0, momentum=0.5, trust=0.1)
    give([0.0, 2.0], weights)
    # ‖p‖ = 5, ‖g‖ = 2: the step is 2 · 0.1 · 5/2 · (0, 2) = (0, 1).
    optimiser.step()
    torch.testing.assert_close(weights.detach(), torch.tensor([3.0, 3.0], dtype=torch.float64))
    # With g = p the update is a tenth of p: v = 0.5 · (0, 0.5) + (0.3, 0.3).
    give([3.0, 3.0], weights)
    optimiser.step()
    torch.testing.assert_close(weights.detach(), torch.tensor([3 - 0.6, 3 - 0.5 - 0.6], dtype=torch.float64))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("adapt", [True, False])
def test_several_steps_are_those_of_the_rule(momentum, decay, adapt):
    rng = np.random.default_rng(0)
    starts = [rng.normal(size=shape) for shape in ((4, 3), (7,), (2, 3, 3))]
    gradients = [[rng.normal(size=start.shape) for _ in range(5)] for start in starts]
    parameters = [nn.Parameter(torch.from_numpy(start.copy())) for start in starts]
    groups = [{"params": parameters, "adapt": adapt}]
    optimiser = Lars(groups, lr=0.3, momentum=momentum, weight_decay=decay, trust=0.02)
    for step in range(5):
        for own, given in zip(parameters, gradients, strict=True):
            own.grad = torch.from_numpy(given[step])
        optimiser.step()
    for own, start, given in zip(parameters, starts, gradients, strict=True):
        expected = oracle(start, given, 0.3, momentum, decay, 0.02, adapt)
        np.testing.assert_allclose(own.detach(), expected, rtol=1e-12)


def test_without_adaptation_it_is_torchs_sgd():
    ours, theirs = parameter(1.0, -2.0, 0.5), parameter(1.0, -2.0, 0.5)
    optimisers = [
        Lars([{"params": [ours], "adapt": False}], lr=0.1, momentum=0.9, weight_decay=0.1),
        torch.optim.SGD([theirs], lr=0.1, momentum=0.9, weight_decay=0.1),
    ]
    for step in range(4):
        for own, optimiser in zip((ours, theirs), optimisers, strict=True):
            give([1.0, step, -0.5], own)
            optimiser.step()
    torch.testing.assert_close(ours, theirs)


def test_weights_or_gradients_of_zero_take_plain_steps_and_no_nan():
    zero, still, both = parameter(0.0, 0.0), parameter(1.0, 2.0), parameter(0.0, 0.0)
    optimiser = Lars([zero, still, both], lr=0.5, trust=0.001)
    give([1.0, -1.0], zero)
    give([0.0, 0.0], still)
    give([0.0, 0.0], both)
    optimiser.step()
    assert zero.tolist() == [-0.5, 0.5]
    assert still.tolist() == [1.0, 2.0]
    assert both.tolist() == [0.0, 0.0]


def test_parameters_without_a_gradient_stay():
    used, unused = parameter(1.0), parameter(1.0)
    optimiser = Lars([used, unused], lr=1.0, trust=0.1)
    optimiser.step()
    assert used.item() == 1.0
    give([1.0], used)
    optimiser.step()
    assert (used.item(), unused.item()) == (pytest.approx(0.9), 1.0)
    assert unused not in optimiser.state


def test_bias_and_batch_norm_neither_adapt_nor_decay():
    head = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    weights, others = exempt_vectors(head.parameters(), adapts=True)
    assert [tuple(p.shape) for p in weights["params"]] == [(8, 4), (2, 8)]
    assert [tuple(p.shape) for p in others["params"]] == [(8,), (8,), (8,), (2,)]
    optimiser = Lars(exempt_vectors(head.parameters(), adapts=True), lr=0.1, weight_decay=1e-6)
    assert [(group["adapt"], group["weight_decay"]) for group in optimiser.param_groups] == [(True, 1e-6), (False, 0.0)]
    plain = torch.optim.SGD(exempt_vectors(head.parameters(), adapts=False), lr=0.1, weight_decay=1e-6)
    assert [group["weight_decay"] for group in plain.param_groups] == [1e-6, 0.0]
    assert all("adapt" not in group for group in plain.param_groups)


def test_its_state_goes_through_a_file_of_tensors_and_the_next_step_is_the_same():
    torch.manual_seed(0)
    head = nn.Linear(4, 3)
    optimiser = Lars(exempt_vectors(head.parameters(), adapts=True), lr=0.1, weight_decay=1e-4)
    inputs = torch.randn(8, 4)

    def step(module, optimiser):
        optimiser.zero_grad()
        module(inputs).square().mean().backward()
        optimiser.step()

    for _ in range(3):
        step(head, optimiser)
    buffers = {str(n): optimiser.state[p]["momentum_buffer"] for n, p in enumerate(head.parameters())}
    read = safetensors.torch.load(safetensors.torch.save(buffers))
    twin = copy.deepcopy(head)
    again = Lars(exempt_vectors(twin.parameters(), adapts=True), lr=0.1, weight_decay=1e-4)
    for place, own in enumerate(twin.parameters()):
        again.state[own]["momentum_buffer"] = read[str(place)]
    third = copy.deepcopy(head)
    loaded = Lars(exempt_vectors(third.parameters(), adapts=True), lr=0.7)
    loaded.load_state_dict(copy.deepcopy(optimiser.state_dict()))  # torch hands out its own buffers
    for module, own in ((head, optimiser), (twin, again), (third, loaded)):
        step(module, own)
    for one, two, three in zip(head.parameters(), twin.parameters(), third.parameters(), strict=True):
        assert torch.equal(one, two)
        assert torch.equal(one, three)


def test_a_closure_is_called_with_gradients_and_its_loss_returned():
    weights = parameter(2.0)
    optimiser = Lars([weights], lr=1.0, momentum=0.0, trust=0.5)

    def closure():
        optimiser.zero_grad()
        loss = (weights**2).sum()
        loss.backward()
        return loss

    assert optimiser.step(closure).item() == 4.0
    assert weights.item() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("lr", -1.0), ("momentum", 1.0), ("momentum", -0.1), ("weight_decay", -1.0), ("trust", math.nan)],
)
def test_settings_that_make_no_sense_are_refused(name, value):
    with pytest.raises(InputError, match=name):
        Lars([parameter(1.0)], **{"lr": 0.1, name: value})
