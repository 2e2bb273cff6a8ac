"""DEC and IDEC: losses by hand and compared with an oracle; where centres start, what they learn from, and when."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers import oracle
from helpers.recipes import built, lengths, widths
from helpers.small import CPU, digits, quick_config
from propos.losses import symmetric
from propos.methods import settings_of
from propos.methods.dec import Decoder, StudentT, reconstruction, sharpened, sharpening
from propos.runner.recipes import build_recipe
from propos.training.corrections import EXCLUDED, FREE, Corrections
from propos.training.e_step import cluster_current_embeddings, e_step, unassigned
from propos.training.embedding import embed, method_output_batches
from propos.training.learner import at_stage, build_learner, trained_parameters
from propos.training.m_step import m_step
from propos.training.stage_setup import begin_epoch
from propos.training.state import first_state

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 7, 4))
CENTRES = RNG.normal(size=(5, 4))
TARGETS = oracle.sharpened(oracle.student(RNG.normal(size=(7, 4)), CENTRES, 0.3))
BATCH = torch.arange(64)


def head_of(centres, spread):
    head = StudentT(centres.shape[1], len(centres), spread).double()
    head.start_at(torch.as_tensor(centres))
    return head


def test_reconstruction_equals_the_oracle_in_value_and_gradient():
    pixels = torch.tensor(RNG.normal(size=(2, 7, 4)))

    def ours(made):
        return symmetric(reconstruction, (made, pixels[0]), (torch.tensor(SECOND), pixels[1]))

    def expected(made):
        of_views = zip((made, SECOND), pixels.numpy(), strict=True)
        return sum(oracle.reconstruction(*each) for each in of_views) / 2

    oracle.check(ours, expected, FIRST)


def test_reconstruction_by_hand():
    # Errors of 1 and 3 in the first image, of 0 and 2 in the second: (1 + 9 + 0 + 4) / 4.
    made, pixels = torch.tensor([[1.0, 0.0], [5.0, 2.0]]), torch.tensor([[2.0, 3.0], [5.0, 4.0]])
    assert float(reconstruction(made, pixels)) == pytest.approx(3.5)


def test_sharpening_equals_the_oracle_in_value_and_gradient_through_students_t():
    head, targets = head_of(CENTRES, 0.3), torch.tensor(TARGETS)

    def ours(first):
        assigned = [head(each).softmax(dim=1) for each in (first, torch.tensor(SECOND))]
        return symmetric(sharpening, (assigned[0], targets), (assigned[1], targets))

    def expected(first):
        assigned = [oracle.student(each, CENTRES, 0.3) for each in (first, SECOND)]
        return sum(oracle.sharpening(each, TARGETS) for each in assigned) / 2

    oracle.check(ours, expected, FIRST)


def test_centres_learn_by_the_same_gradient():
    head = head_of(CENTRES, 0.3)
    sharpening(head(torch.tensor(FIRST)).softmax(dim=1), torch.tensor(TARGETS)).backward()
    expected = oracle.finite_difference(lambda c: oracle.sharpening(oracle.student(FIRST, c, 0.3), TARGETS), CENTRES)
    np.testing.assert_allclose(head.centres.weight.grad.numpy(), expected, atol=1e-7)


def test_students_t_by_hand():
    # From an image along the first axis centres lie at squared distances of 0, 2 and 4: with a spread of 2, the kernel
    # is 1, 1/2 and 1/3, of 11/6 together.
    head = head_of(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), 2.0)
    assigned = head(torch.tensor([[7.0, 0.0]]).double()).softmax(dim=1)
    assert assigned[0].tolist() == pytest.approx([6 / 11, 3 / 11, 2 / 11])
    # The centres' lengths have no effect.
    with torch.no_grad():
        head.centres.weight.mul_(3.0)
    again = head(torch.tensor([[7.0, 0.0]]).double()).softmax(dim=1)
    assert again[0].tolist() == pytest.approx(assigned[0].tolist())


def test_students_t_computes_in_full_precision_within_a_region_of_half_precision():
    head, projections = StudentT(4, 5, 0.1), torch.tensor(FIRST).float()
    with torch.autocast("cpu", torch.bfloat16):
        inside = head(projections.bfloat16())
    assert inside.dtype == torch.float32
    torch.testing.assert_close(inside, head(projections.bfloat16().float()))


def test_sharpening_by_hand():
    # ln(1/q) for a target of one cluster; for even odds against 3/4 and 1/4, (ln(2/3) + ln 2) / 2.
    assigned, targets = torch.tensor([[0.25, 0.75], [0.75, 0.25]]), torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    expected = (math.log(4) + (math.log(2 / 3) + math.log(2)) / 2) / 2
    assert float(sharpening(assigned, targets)) == pytest.approx(expected)
    assert float(sharpening(assigned, assigned)) == pytest.approx(0.0, abs=1e-7)
    assert math.isfinite(sharpening(torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]])))


def test_targets_by_hand():
    # Sizes of 1.5 and 0.5. The first image: 1/1.5 and 0; the second 0.25/1.5 and 0.25/0.5, three times as much.
    assigned = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    torch.testing.assert_close(sharpened(assigned), torch.tensor([[1.0, 0.0], [0.25, 0.75]]))


def test_targets_equal_the_oracle():
    assigned = oracle.student(FIRST, CENTRES, 0.3)
    np.testing.assert_allclose(sharpened(torch.tensor(assigned)), oracle.sharpened(assigned), atol=1e-12)


def test_an_empty_cluster_is_nobodys_target_and_rows_of_zeros_stay_zero():
    targets = sharpened(torch.tensor([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0], [0.0, 0.0, 0.0]]))
    assert targets[:, 2].tolist() == [0.0, 0.0, 0.0]
    torch.testing.assert_close(targets.sum(dim=1), torch.tensor([1.0, 1.0, 0.0]))


def test_the_decoder_reads_directions_only():
    decoder = Decoder(4, 8, side=2, channels=3)
    made = decoder(torch.tensor([[1.0, 2.0, 0.0, 0.0], [2.0, 4.0, 0.0, 0.0]]))
    assert made.shape == (2, 12)
    torch.testing.assert_close(made[0], made[1])


def test_large_images_are_averaged_down_to_the_decoders_side_by_hand():
    decoder = Decoder(4, 8, side=2, channels=1)
    view = torch.tensor([[0.0, 2.0, 5.0, 5.0], [4.0, 6.0, 5.0, 5.0], [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 8.0]])
    assert decoder.pixels(view[None, None]).tolist() == [[3.0, 5.0, 1.0, 2.0]]
    small = view[None, None, :2, :2]
    assert decoder.pixels(small).tolist() == [[0.0, 2.0, 4.0, 6.0]]


def test_the_decoder_changes_nothing_that_is_drawn_before_it():
    idec = build_learner(quick_config(method="idec"), digits(), CPU).method
    swav = build_learner(quick_config(method="swav", overclustering=1), digits(), CPU).method
    ours, theirs = idec.online.state_dict(), swav.online.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours.keys() | theirs.keys())
    assert torch.equal(idec.head.centres.weight, swav.prototypes.weight)


def trained(method, **settings):
    """Return a learner that has taken a few steps of its first stage, its state and the images."""
    source = digits()
    learner = build_learner(quick_config(source, method=method, train__epochs=6, **settings), source, CPU)
    state = first_state(learner)
    state.partition = unassigned(200, CPU)
    begin_epoch(learner, source, state)
    for _ in range(3):
        m_step(learner, source, BATCH, state)
    return learner, state, source


def opened(method, **settings):
    """Return the same in its second stage, which has just opened."""
    learner, state, source = trained(method, **settings)
    learner = at_stage(learner, 1)
    state.epoch = learner.epochs.start
    begin_epoch(learner, source, state)
    return learner, state, source


def weights(learner):
    return {name: tensor.clone() for name, tensor in learner.method.state_dict().items()}


def parts_that_moved(learner, before):
    after = learner.method.state_dict()
    return {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}


@pytest.mark.parametrize("method", ["dec", "idec"])
def test_the_first_stage_learns_to_reconstruct_and_no_clusters(method):
    learner, state, source = trained(method)
    before = weights(learner)
    losses = [m_step(learner, source, BATCH, state) for _ in range(20)]
    assert {*losses[0]} == {"reconstruction"}
    errors = [float(each["reconstruction"]) for each in losses]
    assert sum(errors[-5:]) < sum(errors[:5])
    assert parts_that_moved(learner, before) == {"online", "decoder"}


def test_centres_start_at_the_prototypes_of_k_means_and_assign_as_it_does():
    learner, state, source = trained("dec")
    learner = at_stage(learner, 1)
    state.epoch = learner.epochs.start
    found = cluster_current_embeddings(learner, source, state.epoch, state.partition)
    begin_epoch(learner, source, state)
    torch.testing.assert_close(learner.method.head.centres.weight, found.prototypes)
    assert torch.equal(e_step(learner, source, state.epoch, None).labels, found.labels)


def test_images_that_are_left_out_count_for_no_clusters_size():
    learner, state, source = opened("dec")
    junk = torch.arange(200) % 4 == 0
    corrections = Corrections(torch.where(junk, EXCLUDED, FREE), {}, {})
    state.epoch += 1
    begin_epoch(learner, source, state, corrections)
    seen = method_output_batches(learner.method, source, learner.config)
    assigned = torch.cat([each for *_, each in seen])[~junk]
    expected = torch.from_numpy(oracle.sharpened(assigned.double().numpy()))
    targets = learner.method.memory["targets"]
    torch.testing.assert_close(targets[~junk].double(), expected, rtol=1e-4, atol=1e-6)
    assert not targets[junk].any()


def test_centres_start_once():
    learner, state, source = opened("dec")
    before = learner.method.head.centres.weight.clone()
    m_step(learner, source, BATCH, state)
    after = learner.method.head.centres.weight.clone()
    assert not torch.equal(before, after)
    state.epoch += 1
    begin_epoch(learner, source, state)
    assert torch.equal(learner.method.head.centres.weight, after)


def test_targets_are_sharpened_of_all_images_before_each_epoch():
    learner, state, source = opened("idec")
    embeddings = embed(learner.method.online, source, learner.config).double().numpy()
    centres = learner.method.head.centres.weight.detach().double().numpy()
    assigned = oracle.student(embeddings, centres, learner.method.settings.spread)
    targets = learner.method.memory["targets"].clone()
    torch.testing.assert_close(targets.double(), torch.tensor(oracle.sharpened(assigned)), rtol=1e-4, atol=1e-6)
    for _ in range(2):
        m_step(learner, source, BATCH, state)
    assert torch.equal(learner.method.memory["targets"], targets)
    state.epoch += 1
    begin_epoch(learner, source, state)
    assert not torch.equal(learner.method.memory["targets"], targets)


def test_a_checkpoints_targets_have_to_be_one_an_image_and_cluster():
    memory = opened("dec")[0].method.memory
    assert memory.fits("targets", memory["targets"])
    assert not memory.fits("targets", memory["targets"][:-1])
    assert not memory.fits("targets", memory["targets"][:, :-1])


@pytest.mark.parametrize(("method", "terms"), [("dec", {"sharpening"}), ("idec", {"reconstruction", "sharpening"})])
def test_the_decoder_is_trained_in_the_second_stage_by_idec_alone(method, terms):
    learner, state, source = opened(method)
    calls = []
    learner.method.decoder.register_forward_hook(lambda *_: calls.append(1))
    before = weights(learner)
    losses = m_step(learner, source, BATCH, state)
    assert {*losses} == terms
    assert all(torch.isfinite(loss) for loss in losses.values())
    decodes = "reconstruction" in terms
    assert bool(calls) is decodes
    assert ("decoder" in parts_that_moved(learner, before)) is decodes
    trained_ids = {id(parameter) for parameter in trained_parameters(learner.method)}
    assert all((id(each) in trained_ids) is decodes for each in learner.method.decoder.parameters())


def test_the_loss_of_a_step_is_that_of_its_views():
    """By the outputs of the network's own parts, and the arithmetic of the oracle."""
    learner, state, source = opened("idec")
    method, outputs, inputs = learner.method, {"online": [], "decoder": [], "head": []}, []
    for name, kept in outputs.items():
        getattr(method, name).register_forward_hook(lambda _, __, made, kept=kept: kept.append(made.detach()))
    method.online.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    targets = method.memory["targets"][BATCH].numpy()
    losses = m_step(learner, source, BATCH, state)
    side = method.decoder.side
    pixels = [F.adaptive_avg_pool2d(view, side).flatten(1) for view in inputs]
    errors = [float(F.mse_loss(made, wanted)) for made, wanted in zip(outputs["decoder"], pixels, strict=True)]
    divergences = [oracle.sharpening(logits.softmax(dim=1).numpy(), targets) for logits in outputs["head"]]
    assert [len(each) for each in outputs.values()] == [2, 2, 2]
    assert float(losses["reconstruction"]) == pytest.approx(sum(errors) / 2, rel=1e-4)
    assert float(losses["sharpening"]) == pytest.approx(0.1 * sum(divergences) / 2, rel=1e-4)


def test_centres_have_length_one_at_the_start_of_every_step():
    learner, state, source = opened("dec")
    with torch.no_grad():
        learner.method.head.centres.weight.mul_(7.0)
    lengths = []
    learner.method.head.register_forward_pre_hook(
        lambda head, _: lengths.append(head.centres.weight.detach().norm(dim=1))
    )
    m_step(learner, source, BATCH, state)
    torch.testing.assert_close(lengths[0], torch.ones(10))


@pytest.mark.parametrize(("method", "weights"), [("dec", (1.0, 0.0)), ("idec", (0.1, 1.0))])
def test_autoencoders_have_their_own_settings(method, weights):
    config = build_recipe("cifar-10-r18", method).with_settings({"clusters": 7})
    networks, train, own = built(config), config.train, settings_of(config)
    assert (own.sharpening_weight, own.reconstruction_weight) == weights
    assert lengths(config) == [500, 500]
    assert (train.optimiser, train.lr, train.schedule, train.weight_decay) == ("adam", 1e-3, "constant", 0.0)
    assert networks.assign(networks.online.backbone(torch.zeros(2, 3, 32, 32))).shape == (2, 7)
    assert (own.spread, widths(networks.decoder)) == (0.1, (4096, 3 * 32**2))
    larger, smaller = (built(config.with_settings({"views.size": size})) for size in (224, 8))
    assert (larger.decoder.side, smaller.decoder.side) == (32, 8)
