"""Batch norm, and the parts of torch without a promise that it rests on, against torch's public results."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from propos.networks.norm import BatchGroups, BatchNorm, _of_weight_and_bias, _sums, set_groups

SHAPES = [(9, 4), (9, 4, 3, 5)]


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).float() * 2 + 1


def learnt():
    """Return a batch norm whose weights are not those of the start."""
    ours = BatchNorm(4)
    with torch.no_grad():
        ours.weight.copy_(drawn(4, seed=5))
        ours.bias.copy_(drawn(4, seed=6))
    return ours


@pytest.mark.parametrize("shape", SHAPES)
def test_one_group_in_one_process_is_torchs_to_the_bit(shape):
    ours, theirs = learnt(), (nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d)(4)
    theirs.load_state_dict(ours.state_dict())
    for seed in range(3):
        inputs = [drawn(*shape, seed=seed).requires_grad_() for _ in range(2)]
        outputs = [norm(x) for norm, x in zip((ours, theirs), inputs, strict=True)]
        for output in outputs:
            (output * drawn(*shape, seed=9)).sum().backward()
        assert torch.equal(*outputs)
        assert torch.equal(inputs[0].grad, inputs[1].grad)
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(own.grad, other.grad)
    for name, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value), name
    x = drawn(*shape, seed=11)
    assert torch.equal(ours.eval()(x), theirs.eval()(x))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shared", [False, True])
def test_several_groups_are_torchs_on_each(shape, shared):
    ours, rows = learnt(), (4, 5)
    set_groups(ours, BatchGroups(rows, rows, shared=shared))
    x, weights = drawn(*shape).requires_grad_(), drawn(*shape, seed=9)
    y = ours(x)
    (y * weights).sum().backward()

    theirs, weight, bias = (tensor.detach().clone().requires_grad_() for tensor in (x, ours.weight, ours.bias))
    means, variances = torch.zeros(2, 4), torch.ones(2, 4)
    parts = [
        F.batch_norm(part, mean, variance, weight, bias, training=True)
        for part, mean, variance in zip(theirs.split(rows), means, variances, strict=True)
    ]
    (torch.cat(parts) * weights).sum().backward()
    close = {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(y, torch.cat(parts), **close)
    torch.testing.assert_close(x.grad, theirs.grad, **close)
    torch.testing.assert_close(ours.weight.grad, weight.grad, **close)
    torch.testing.assert_close(ours.bias.grad, bias.grad, **close)
    torch.testing.assert_close(ours.running_mean, means.mean(dim=0), **close)
    torch.testing.assert_close(ours.running_var, variances.mean(dim=0), **close)
    assert int(ours.num_batches_tracked) == 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_sums_of_a_group_are_those_of_its_values_and_their_squares(shape, precision):
    x = drawn(*shape).to(precision)
    if x.ndim == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    values = x.double().transpose(0, 1).flatten(1)
    expected = torch.stack([values.sum(dim=1), values.square().sum(dim=1)])
    torch.testing.assert_close(_sums(x), expected, rtol=1e-5, atol=1e-5)
    assert _sums(x[:0]).tolist() == [[0.0] * 4] * 2


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_of_weight_and_bias_are_those_that_autograd_gives_the_public_function(shape):
    x, gradient, weight = drawn(*shape), drawn(*shape, seed=1), drawn(4, seed=5)
    theirs, bias = weight.clone().requires_grad_(), torch.zeros(4, requires_grad=True)
    (F.batch_norm(x, None, None, theirs, bias, training=True) * gradient).sum().backward()
    values = x.transpose(0, 1).flatten(1)
    made = _of_weight_and_bias(gradient, x, values.mean(dim=1), values.var(dim=1, correction=0), weight, 1e-5)
    torch.testing.assert_close(made, torch.stack([theirs.grad, bias.grad]), rtol=1e-4, atol=1e-4)
    nothing = _of_weight_and_bias(gradient[:0], x[:0], weight, weight, weight, 1e-5)
    assert nothing.tolist() == [[0.0] * 4] * 2
