"""SeCu: losses by hand and compared with plain loops, clusters held to a size, and the labels that a run keeps."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.recipes import built, of_system
from helpers.small import CPU, digits, quick_config
from propos.common.errors import InputError
from propos.methods import settings_of, stages_of
from propos.methods.secu import Centres, centre_agreement, centre_learning
from propos.runs import RunFolder
from propos.training import Silent
from propos.training.checkpoint import CheckpointWriter, load_checkpoint
from propos.training.e_step import unassigned
from propos.training.learner import at_stage, build_learner, trained_parameters
from propos.training.m_step import m_step
from propos.training.optimiser import set_rates
from propos.training.state import first_state

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 7, 4))
CENTRES = np.array([oracle.unit(row) for row in RNG.normal(size=(5, 4))])
LABELS = np.array([0, 4, 2, 2, 1, 0, 4])
BATCH = torch.arange(64)


def test_agreement_equals_the_oracle_in_value_and_gradient():
    others, centres, labels = torch.tensor(SECOND), torch.tensor(CENTRES), torch.tensor(LABELS)
    oracle.check(
        lambda x: centre_agreement(x, others, centres, labels, 0.3, 0.2),
        lambda x: oracle.centre_agreement(x, SECOND, CENTRES, LABELS, 0.3, 0.2),
        FIRST,
    )


def test_agreement_moves_neither_the_other_view_nor_the_centres():
    first, others, centres = (torch.tensor(each, requires_grad=True) for each in (FIRST, SECOND, CENTRES))
    centre_agreement(first, others, centres, torch.tensor(LABELS), 0.3, 0.2).backward()
    assert first.grad.any()
    assert others.grad is None
    assert centres.grad is None


def test_learning_equals_the_oracle_in_value_and_moves_own_centres_alone():
    centres, first = torch.tensor(CENTRES, requires_grad=True), torch.tensor(FIRST, requires_grad=True)
    loss = centre_learning(first, centres, torch.tensor(LABELS), 0.3)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(oracle.centre_learning(FIRST, CENTRES, LABELS, 0.3), abs=1e-9)
    expected = oracle.centre_learning_gradient(FIRST, CENTRES, LABELS, 0.3)
    np.testing.assert_allclose(centres.grad.numpy(), expected, atol=1e-12)
    assert not centres.grad[3].any()  # no image is its own
    assert first.grad is None


def test_both_by_hand():
    # Two centres at right angles, an image along the first, temperature 1: softmax e/(1 + e) and 1/(1 + e).
    image, centres, label = torch.tensor([[2.0, 0.0]]), torch.eye(2), torch.tensor([0])
    assert float(centre_learning(image, centres, label, 1.0)) == pytest.approx(math.log(1 + math.exp(-1)))
    # A quarter for the label, the second centre, and three for the other view, which lies between both.
    other = torch.tensor([[1.0, 1.0]])
    expected = math.log(1 + math.e) - (0.25 * 0 + 0.75 * 0.5)
    assert float(centre_agreement(image, other, centres, 1 - label, 1.0, 0.25)) == pytest.approx(expected)


def centres_by_hand():
    centres = Centres(2, (2, 4), images=8)
    with torch.no_grad():
        centres.weight.copy_(torch.tensor([[3.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]))
    return centres


def test_images_belong_to_the_nearest_centre_of_each_set():
    first, second = torch.tensor([[1.0, 0.1], [-1.0, 0.0]]), torch.tensor([[5.0, -0.1], [-0.8, -0.6]])
    centres = centres_by_hand()
    assert centres.nearest(first, second).tolist() == [[0, 0], [1, 2]]
    np.testing.assert_allclose(centres(first).detach()[0], np.array([1.0, 0.1]) / math.hypot(1.0, 0.1), rtol=1e-6)
    torch.testing.assert_close(centres.current()[0].detach(), torch.eye(2))


def test_small_clusters_have_larger_duals_until_images_come_to_them():
    centres, images = centres_by_hand(), torch.arange(8)
    duals = centres.memory["duals"]
    # All images in the first clusters: shares of (1, 0) and (1, 0, 0, 0), compared with 0.45 and 0.225.
    labels = torch.zeros(8, 2).long()
    centres.record(images, labels, 0.1)
    torch.testing.assert_close(duals, torch.tensor([0.0, 0.045, 0.0, 0.0225, 0.0225, 0.0225]))
    centres.record(images, labels, 0.1)
    torch.testing.assert_close(duals[:2], torch.tensor([0.0, 0.09]))
    # An image just inside the first cluster is put into the second once that one's dual exceeds the lead of 0.07.
    near = torch.tensor([[0.74, 0.67]])
    assert centres.nearest(near, near)[0, 0] == 1
    # Now all are in the second: its dual falls by 0.1 · (1 − 0.45), never below 0.
    centres.record(images, torch.ones(8, 2).long(), 0.1)
    torch.testing.assert_close(duals[:2], torch.tensor([0.045, 0.035]))
    centres.record(images, torch.ones(8, 2).long(), 0.1)
    torch.testing.assert_close(duals[:2], torch.tensor([0.09, 0.0]))


def test_the_centres_of_the_epochs_start_change_when_an_epoch_begins_alone():
    centres = centres_by_hand()
    assert not torch.equal(centres.at_epoch_start()[0][0], torch.tensor([1.0, 0.0]))
    centres.begin_epoch()
    torch.testing.assert_close(centres.at_epoch_start()[0], torch.eye(2))
    with torch.no_grad():
        centres.weight.zero_()
    torch.testing.assert_close(centres.at_epoch_start()[0], torch.eye(2))


def started(method="secu", **settings):
    source = digits()
    own = {f"{method}__overclustering": 2} if method == "secu" else {"secu__overclustering": 2}
    learner = build_learner(quick_config(source, method=method, **own, **settings), source, CPU)
    state = first_state(learner)
    state.partition = unassigned(200, CPU)
    return learner, source, state


def labels_of(learner):
    return learner.method.centres.last_labels(torch.arange(200))


def test_a_step_keeps_the_labels_of_its_images_and_raises_the_duals_of_small_clusters():
    learner, source, state = started()
    assert labels_of(learner).shape == (200, 2)
    assert (labels_of(learner) == -1).all()
    m_step(learner, source, BATCH, state)
    labels, duals = labels_of(learner), learner.method.centres.memory["duals"]
    assert (labels[64:] == -1).all()
    assert (labels[:64] >= 0).all()
    sizes = torch.bincount(labels[:64, 1], minlength=20)
    assert learner.method.settings.dual_step == 1.0
    torch.testing.assert_close(duals[10:], (0.9 / 20 - sizes / 64).clamp(min=0))


def test_the_losses_of_a_step_are_means_over_sets_and_views():
    learner, source, state = started(temperature=0.2, centre_temperature=0.3)
    centres = learner.method.centres
    for size in (10, 20):  # of half of the images; the others have the labels of this step
        centres.memory[f"labels{size}"][:32] = torch.arange(32) % size
    with torch.no_grad():
        now, before = (
            [each.double().numpy().copy() for each in sets()] for sets in (centres.current, centres.at_epoch_start)
        )
    earlier, views = labels_of(learner)[:64], []
    learner.method.online.register_forward_hook(lambda *passed: views.append(passed[2].detach().double().numpy()))
    losses = m_step(learner, source, BATCH, state)
    labels = labels_of(learner)[:64]
    earlier = torch.where(earlier < 0, labels, earlier).numpy()
    directions = [(views[0], views[1]), (views[1], views[0])]
    agreement = [
        oracle.centre_agreement(*both, before[place], earlier[:, place], 0.2, 0.2)
        for place in (0, 1)
        for both in directions
    ]
    learning = [
        oracle.centre_learning(view, now[place], labels[:, place].numpy(), 0.3) for place in (0, 1) for view in views
    ]
    assert float(losses["agreement"]) == pytest.approx(np.mean(agreement), rel=1e-4)
    assert float(losses["centres"]) == pytest.approx(np.mean(learning), rel=1e-4)


def test_images_agree_with_their_labels_of_the_epoch_before():
    """The same step with other earlier labels has another loss of agreement and the same of centres."""
    losses = []
    for shift in (0, 1):
        learner, source, state = started()
        for size in (10, 20):
            learner.method.centres.memory[f"labels{size}"].copy_((torch.arange(200) + shift) % 10)
        losses.append(m_step(learner, source, BATCH, state))
    assert losses[0]["agreement"] != losses[1]["agreement"]
    assert losses[0]["centres"] == losses[1]["centres"]


def test_centres_have_a_constant_rate_of_their_own():
    learner, _, _ = started(train__epochs=10, train__warmup=2)
    rates = []
    for step in (0, 20, 29):
        set_rates(learner.optimiser, learner.schedule, step)
        rates.append([group["lr"] for group in learner.optimiser.param_groups if group["params"]])
    peak = learner.schedule.peak
    assert [of_centres for _, of_centres in rates] == pytest.approx([6 * peak] * 3)
    assert rates[0][0] < rates[1][0] < peak
    assert rates[2][0] == pytest.approx(0.0, abs=1e-9)
    *_, last = (group for group in learner.optimiser.param_groups if group["params"])
    assert [id(parameter) for parameter in last["params"]] == [id(learner.method.centres.weight)]
    parameters = [parameter for group in learner.optimiser.param_groups for parameter in group["params"]]
    trained = trained_parameters(learner.method)
    assert len(parameters) == len(trained)
    assert {id(parameter) for parameter in parameters} == {id(parameter) for parameter in trained}


def test_the_head_assigns_by_cosines_of_projections_over_the_temperature():
    learner, _, _ = started(temperature=0.2)
    method = learner.method.eval()
    with torch.no_grad():
        features = torch.randn(5, method.online.features, generator=torch.Generator().manual_seed(0))
        projections = method.online.projector(features)
        cosines = [torch.cosine_similarity(projections, row[None]) for row in method.centres.weight[:10]]
        torch.testing.assert_close(method.assign(features), torch.stack(cosines, dim=1) / 0.2)


def test_a_stage_of_another_method_leaves_the_centres_and_their_labels():
    learner, source, state = started("dcboost", pretext="secu")
    learner = at_stage(learner, 1)
    state.epoch = learner.epochs.start
    centres = learner.method.pretext.centres
    before = {name: tensor.clone() for name, tensor in centres.state_dict().items()}
    m_step(learner, source, BATCH, state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in centres.state_dict().items())


def test_a_checkpoint_keeps_the_labels_and_refuses_those_of_centres_that_do_not_exist(tmp_path):
    learner, source, state = started()
    run = RunFolder.create(tmp_path / "run", {"status": "running"}, learner.config)
    m_step(learner, source, BATCH, state)
    checkpoints = CheckpointWriter(run)
    checkpoints.save(learner, state)
    checkpoints.wait()
    restored, _ = load_checkpoint(run, started()[0], Silent())
    assert torch.equal(labels_of(restored), labels_of(learner))
    learner.method.centres.memory["labels20"][3] = 20
    checkpoints.save(learner, state)
    checkpoints.close()
    with pytest.raises(InputError, match=r"centres\.memory\.labels20: does not fit the method's memory"):
        load_checkpoint(run, started()[0], Silent())


def test_secu_has_its_own_settings():
    secu = of_system("secu-cifar-10")
    own = settings_of(secu)
    assert built(secu).centres.sizes == tuple(range(10, 101, 10))
    rate = secu.train.lr * secu.train.batch_size / 256
    assert (rate, rate * stages_of(secu)[0].rates["centres"].scale) == pytest.approx((0.2, 1.2))
    assert (secu.train.warmup, secu.train.epochs, secu.train.weight_decay) == (11, 401, 1e-4)
    assert (own.dual_step, own.temperature, own.centre_temperature) == (0.1, 0.05, 0.05)
    assert (secu.views.crop_scale, secu.views.saturation, secu.views.hue) == ((0.3, 1.0), 0.2, 0.1)
