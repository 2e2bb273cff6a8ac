"""Given the same network outputs, loss and gradient do not depend on how many processes share the batch."""

import pytest
import torch
import torch.distributed as dist

from helpers.processes import run_on
from propos.distributed import gather
from propos.objectives import Alignment, Outputs, PrototypeScattering

BATCH, DIMENSION = 12, 6
# The first process alone would miss clusters 2 and 3, and sees the only images labelled -1.
LABELS = torch.tensor([0, 0, 1, -1, 1, 0, 2, 2, 3, 3, 1, 2])


def losses_and_gradients(rank, world):
    """Return PSA, PSL, and the gradient of their sum for a weight that all processes share."""
    draw = torch.randn(3, 2, BATCH, DIMENSION, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight = torch.eye(DIMENSION, dtype=torch.float64, requires_grad=True)
    part = slice(rank * BATCH // world, (rank + 1) * BATCH // world)
    local = [[tensor[part] @ weight for tensor in pair] for pair in draw]
    for tensor in (*local[0], *local[1]):
        tensor.retain_grad()
    outputs = Outputs(*(tuple(gather(tensor) for tensor in pair) for pair in local))
    labels = gather(LABELS[part])
    psa, psl = Alignment()(outputs, labels), PrototypeScattering(0.5)(outputs, labels)
    (psa + psl).backward()
    gradient = weight.grad.clone()
    output_gradient = torch.stack([tensor.grad for tensor in (*local[0], *local[1])])
    if world > 1:
        # What DDP does after the backward pass.
        dist.all_reduce(gradient)
        gradient /= world
    return {"psa": psa.detach(), "psl": psl.detach(), "gradient": gradient, "outputs": output_gradient}


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return run_on(2, losses_and_gradients, tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def one():
    return losses_and_gradients(0, 1)


@pytest.mark.parametrize("name", ["psa", "psl", "gradient"])
def test_every_process_has_the_one_process_value(one, two, name):
    for process in two:
        torch.testing.assert_close(process[name], one[name], rtol=0, atol=1e-12)


def test_each_process_holds_its_slice_of_the_output_gradient(one, two):
    # Two processes each computed the whole loss: their summed gradient is twice the one loss's, DDP halves it.
    both = torch.cat([process["outputs"] for process in two], dim=1)
    torch.testing.assert_close(both / 2, one["outputs"], rtol=0, atol=1e-12)
