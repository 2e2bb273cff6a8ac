"""Two processes make of a batch, and of an E-step, what one makes of it."""

import pytest
import torch

from helpers import together, two_stages
from helpers.small import quick_train
from helpers.torchrun import run_pair


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return found_by(tmp_path_factory.mktemp("two"), together.write)


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    return found_by(tmp_path_factory.mktemp("others"), together.write_others)


def found_by(folder, function):
    """Return what each of two processes found."""
    result = run_pair(folder, function=function)
    assert result.code == 0, result.err
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.fixture
def steps(request, case):
    """Return a step of each of two processes."""
    processes = request.getfixturevalue("others" if case in together.OTHERS else "two")
    return [process["steps"][case] for process in processes]


EACH = [pytest.param(case, marks=[pytest.mark.full] if case in together.OTHERS else []) for case in together.STEPS]


def agree(found, expected, **tolerances):
    assert found.keys() == expected.keys()
    for name in found:
        torch.testing.assert_close(
            found[name], expected[name], msg=lambda text, name=name: f"{name}: {text}", **tolerances
        )


def far_apart(found, expected):
    """Return how far apart two lists of tensors are, as a share of their length."""
    assert found.keys() == expected.keys()
    flat = [torch.cat([tensors[name].flatten() for name in expected]).double() for tensors in (found, expected)]
    return float((flat[0] - flat[1]).norm() / flat[1].norm().clamp(min=1e-12))


@pytest.mark.parametrize("case", EACH)
def test_losses_gradients_and_labels_do_not_depend_on_the_number_of_processes(steps, case):
    one = together.one_step(*together.STEPS[case])
    for found in steps:
        assert torch.equal(found["labels"], one["labels"])
        agree(found["losses"], one["losses"], rtol=1e-5, atol=1e-6)
        largest = max(gradient.abs().max() for gradient in one["gradients"].values())
        # Clusters that tell nothing of each other yet, as IIC's, ask for little.
        assert largest > (1e-5 if case == "iic" else 1e-3)
        assert far_apart(found["gradients"], one["gradients"]) < 1e-3
        for name, gradient in one["gradients"].items():
            # Rounding may take a unit of ReLU to the other side of zero, which few weights of a layer then feel.
            apart = far_apart({name: found["gradients"][name]}, {name: gradient})
            nothing = 1e-6 if case == "iic" else 1e-4 * largest
            assert apart < 2e-2 or gradient.norm() < nothing, name
        agree(found["buffers"], one["buffers"], rtol=1e-5, atol=1e-6)
        agree(found["memories"], one["memories"], rtol=1e-5, atol=1e-5)
        assert ("streamed" in found) == ("streamed" in one)
        torch.testing.assert_close(found.get("streamed", 0), one.get("streamed", 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", EACH)
def test_every_process_ends_a_step_with_the_same_bits(steps, case):
    first, second = steps
    for kind in ("losses", "gradients", "buffers", "memories"):
        assert all(torch.equal(first[kind][name], second[kind][name]) for name in first[kind])


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 6])
def test_batch_norm_is_torchs_on_each_group(two, groups):
    expected = together.batch_norm_by_torch(groups)
    agree(together.batch_norm(groups), expected, rtol=1e-5, atol=1e-5)
    parts = [process["norms"][groups] for process in two]
    for name in ("y", "dx"):
        torch.testing.assert_close(torch.cat([part[name] for part in parts]), expected[name], rtol=1e-5, atol=1e-5)
    for name in ("mean", "var"):
        mean = sum(part[name] for part in parts) / 2
        torch.testing.assert_close(mean, expected[name], rtol=1e-5, atol=1e-5)


def test_batch_norm_of_half_precision_has_full_statistics(two):
    x = together.rows()[0].bfloat16().double().transpose(0, 1).flatten(1)
    for process in two:
        half = process["half"]
        assert half["y"].dtype == half["dx"].dtype == torch.bfloat16
        torch.testing.assert_close(half["mean"].double(), 0.1 * x.mean(dim=1), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(half["var"].double(), 0.9 + 0.1 * x.var(dim=1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=str)
def test_a_shuffled_batch_is_the_batch_in_another_order_to_the_bit(two, kind):
    rows, order = together.rows()[0].to(kind), together.order_of_rows()
    assert torch.equal(torch.cat([process["shuffled"][str(kind)]["there"] for process in two]), rows[order])
    assert torch.equal(torch.cat([process["shuffled"][str(kind)]["back"] for process in two]), rows)
    alone = together.shuffled(kind)
    assert torch.equal(alone["there"], rows[order])
    assert torch.equal(alone["back"], rows)


def test_shuffling_sends_only_the_rows_that_change_process(two):
    half, order = together.ROWS // 2, together.order_of_rows()  # the first process has the first half of the rows
    crossing = [int((order[half:] < half).sum()), int((order[:half] >= half).sum())]
    assert crossing == [2, 2]
    for process, rows in zip(two, crossing, strict=True):
        assert rows * 2**20 <= int(process["shuffled bytes"]) < (rows + 0.1) * 2**20


def test_each_image_is_read_once_an_epoch_by_one_process(two):
    steps = 3
    whole = [process["read"] for process in two]
    assert [len(read) for read in whole] == [2 * steps, 2 * steps]
    for epoch in range(2):
        read = torch.cat([torch.cat(part[epoch * steps : (epoch + 1) * steps]) for part in whole])
        assert len(read) == steps * 64
        assert len(read.unique()) == steps * 64
    for step, alone in enumerate(together.images_read()):
        assert torch.equal(torch.cat([part[step] for part in whole]), alone)


def test_processes_agree_when_one_raises_a_flag(two):
    for process in two:
        assert process["agreed"].tolist() == [True, False]


def test_rows_are_collected_on_the_first_process_alone(two):
    assert two[0]["collected"].tolist() == list(range(7))
    assert len(two[1]["collected"]) == 0


def test_a_run_in_two_stages_ends_alike_on_one_and_two_processes_and_across_a_stop(two):
    two_stages.register()
    try:
        one = quick_train(**two_stages.QUICK)
    finally:
        two_stages.unregister()
    for process in two:
        whole, resumed = process["stages"]["whole"], process["stages"]["resumed"]
        assert (whole["clusters"].numpy() == one.table.cluster).mean() > 0.99
        assert all(torch.equal(whole[name], resumed[name]) for name in whole)
