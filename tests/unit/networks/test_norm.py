"""Batch norm, and the parts of torch without a promise that it rests on, against torch's public results."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from propos.networks.grouped_norm import BatchGroups, _mean_and_inverse
from propos.networks.norm import BatchNorm, in_groups

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
    x, weights = drawn(*shape).requires_grad_(), drawn(*shape, seed=9)
    with in_groups(ours, BatchGroups((rows,), shared=shared)):
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
def test_statistics_of_a_part_are_those_of_its_values_in_float32(shape, precision):
    x = drawn(*shape).to(precision)
    if x.ndim == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    values = x.double().transpose(0, 1).flatten(1)
    expected = values.mean(dim=1).float(), (values.var(dim=1, correction=0) + 1e-5).rsqrt().float()
    torch.testing.assert_close(_mean_and_inverse(x, 1e-5), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("laid", [torch.contiguous_format, torch.channels_last])
def test_groups_of_half_precision_are_those_of_single_precision(shared, laid):
    """To bfloat16's 8 bits, of which torch's kernels lose one; statistics and weights are in float32."""
    results = []
    for precision in (torch.float32, torch.bfloat16):
        ours, shape = learnt(), SHAPES[1]
        x = drawn(*shape).bfloat16().to(precision).contiguous(memory_format=laid).requires_grad_()
        gradient = drawn(*shape, seed=9).bfloat16().to(precision)
        with in_groups(ours, BatchGroups(((4, 5),), shared=shared)):
            y = ours(x)
        y.backward(gradient)
        assert y.dtype == x.grad.dtype == precision
        assert y.is_contiguous(memory_format=laid)
        results.append([y.detach(), x.grad, ours.weight.grad, ours.bias.grad, ours.running_mean, ours.running_var])
    for half, single in zip(*reversed(results), strict=True):
        torch.testing.assert_close(half.float(), single, rtol=2**-7, atol=2**-7)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_two_batches_in_one_pass_are_the_two_passes(shape, shared):
    """Each has statistics of its own, and the buffers contain first the one and then the other."""
    together, apart, groups = learnt(), learnt(), BatchGroups(((4, 5),), shared=shared)
    batches = drawn(*shape), drawn(*shape, seed=1)
    with in_groups(together, groups.concatenated(2)):
        y = together(torch.cat(batches))
    for batch, made in zip(batches, y.chunk(2), strict=True):
        with in_groups(apart, groups):
            torch.testing.assert_close(apart(batch), made)
    for name, value in apart.state_dict().items():
        torch.testing.assert_close(together.state_dict()[name], value)


def test_a_batch_and_then_two_in_one_pass_give_torchs_gradients():
    """As on an accelerator: the first pass is torch's own, the second updates the buffers that it saved."""
    ours, theirs, whole = learnt(), nn.BatchNorm1d(4), BatchGroups(((9,),))
    theirs.load_state_dict(ours.state_dict())
    batches = [drawn(9, 4, seed=seed) for seed in range(3)]
    with in_groups(ours, whole):
        first = ours(batches[0])
    with in_groups(ours, whole.concatenated(2)):
        made = first, *ours(torch.cat(batches[1:])).chunk(2)
    for outputs in (made, [theirs(batch) for batch in batches]):
        sum((number + output).square().sum() for number, output in enumerate(outputs)).backward()
    torch.testing.assert_close(ours.weight.grad, theirs.weight.grad)
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())


@pytest.mark.full
@pytest.mark.parametrize("rows", [((9,),), ((4, 5),), ((0, 9),)])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_a_compiled_norm_is_the_plain_one_in_one_graph(rows, shared, precision):
    results, groups = [], BatchGroups(rows, shared=shared)
    for compiled in (False, True):
        ours, x = learnt(), drawn(*SHAPES[1]).to(precision).requires_grad_()
        if compiled:
            ours.compile(backend="aot_eager", fullgraph=True)
        with in_groups(ours, groups):
            y = ours(x)
        y.backward(drawn(*SHAPES[1], seed=9).to(precision))
        results.append([y, x.grad, ours.weight.grad, ours.bias.grad, *ours.buffers()])
    torch._dynamo.reset()
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-5)
