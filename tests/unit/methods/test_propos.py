"""ProPos: the losses of its ablations as functions, and which tensors its losses are of."""

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.steps import arrays, learner_of, losses_of, step_of
from propos.common.errors import InputError
from propos.methods.propos import prototype_alignment, prototype_uniformity

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 12, 5))
LABELS = np.array([0, 0, 1, 3, 1, -1, 3, 0, 9, 9, 2, 2])
ALL_LABELS = torch.arange(200) % 7 - 1

# A loss of the first argument, given the number of clusters: ours and the oracle's.
CASES = {
    "alignment": (
        lambda x, clusters: prototype_alignment(x, torch.tensor(SECOND), torch.tensor(LABELS), 0.5, clusters),
        lambda x: oracle.prototype_alignment(x, SECOND, LABELS, 0.5),
    ),
    "uniformity": (
        lambda x, clusters: prototype_uniformity(x, torch.tensor(LABELS), 0.5, clusters),
        lambda x: oracle.prototype_uniformity(x, LABELS, 0.5),
    ),
}


# Rows for clusters without an image: K below and above the number of images, and far above.
@pytest.mark.parametrize("clusters", [None, 10, 13, 1000])
@pytest.mark.parametrize("name", CASES)
def test_the_ablations_losses_equal_the_oracle_in_value_and_gradient(name, clusters):
    ours, theirs = CASES[name]
    oracle.check(lambda x: ours(x, clusters), theirs, FIRST)


def test_the_alignment_of_prototypes_is_the_papers_reweighted_sum_over_images():
    ours = prototype_alignment(torch.tensor(FIRST), torch.tensor(SECOND), torch.tensor(LABELS), 0.5)
    assert float(ours) == pytest.approx(oracle.reweighted_alignment(FIRST, SECOND, LABELS, 0.5), abs=1e-9)


@pytest.mark.parametrize("clusters", [None, 6])
@pytest.mark.parametrize("labels", [[3, 3, 3], [-1, -1, -1], [4, -1, 4]])
def test_uniformity_of_fewer_than_two_clusters_and_its_gradient_are_zero(labels, clusters):
    online = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    loss = prototype_uniformity(online, torch.tensor(labels), 0.5, clusters)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert torch.equal(online.grad, torch.zeros_like(online))


def test_alignment_without_any_label_and_its_gradient_are_zero():
    first = torch.tensor(FIRST, requires_grad=True)
    loss = prototype_alignment(first, torch.tensor(SECOND), torch.full((12,), -1), 0.5)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert torch.equal(first.grad, torch.zeros_like(first))


def test_no_gradient_of_the_alignment_reaches_the_target():
    target = torch.tensor(SECOND, requires_grad=True)
    prototype_alignment(torch.tensor(FIRST, requires_grad=True), target, torch.tensor(LABELS), 0.5).backward()
    assert target.grad is None


# The losses of a step.


def outputs_of(method, batch, ctx, sigma=0.0):
    """Return what the losses should be of: projections, targets and predictions of both views."""
    a, b = batch.views()
    za, zb, ta, tb = method.online(a), method.online(b), method.target(a), method.target(b)
    na, nb = ctx.noise_like(za, zb, sigma=sigma)
    return arrays(za, zb), arrays(ta, tb), arrays(method.predictor(za + na), method.predictor(zb + nb))


def both(loss, ours, theirs):
    return (loss(ours[0], theirs[1]) + loss(ours[1], theirs[0])) / 2


def plain(**settings):
    return {"propos__contrast_weight": 0.0, "propos__pull_weight": 0.0, "propos__psl_start": 1, **settings}


def test_before_psl_starts_there_is_only_alignment_without_noise():
    learner = learner_of("propos", **plain(propos__sigma=0.5))
    batch, ctx = step_of(learner, ALL_LABELS, epoch=0)
    losses = losses_of(learner, batch, ctx)
    _, targets, predictions = outputs_of(learner.method, batch, ctx)
    assert list(losses) == ["psa"]
    assert losses["psa"] == pytest.approx(both(oracle.alignment, predictions, targets), rel=1e-4)


def test_then_noise_and_weighted_scattering_take_part():
    learner = learner_of("propos", **plain(propos__sigma=0.5, propos__psl_weight=0.3, propos__temperature=0.2))
    batch, ctx = step_of(learner, ALL_LABELS, epoch=1)
    losses = losses_of(learner, batch, ctx)
    projections, targets, predictions = outputs_of(learner.method, batch, ctx, sigma=0.5)
    labels = ALL_LABELS[:24].tolist()
    scattered = both(lambda o, t: oracle.prototype_scattering(o, t, labels, 0.2), projections, targets)
    assert losses["psa"] == pytest.approx(both(oracle.alignment, predictions, targets), rel=1e-4)
    assert losses["psl"] == pytest.approx(0.3 * scattered, rel=1e-4)


@pytest.mark.parametrize("kind", ["aligned", "uniform"])
def test_the_ablations_are_of_predictions_and_of_projections(kind):
    learner = learner_of("propos", **plain(propos__prototypes=kind, propos__sigma=0.0))
    batch, ctx = step_of(learner, ALL_LABELS, epoch=1)
    found = losses_of(learner, batch, ctx)["psl"]
    projections, targets, predictions = outputs_of(learner.method, batch, ctx)
    labels = ALL_LABELS[:24].tolist()
    expected = {
        "aligned": both(lambda p, t: oracle.prototype_alignment(p, t, labels, 0.5), predictions, targets),
        "uniform": np.mean([oracle.prototype_uniformity(view, labels, 0.5) for view in projections]),
    }
    assert found == pytest.approx(0.1 * expected[kind], rel=1e-4)


def test_images_without_a_cluster_have_no_prototypes():
    learner = learner_of("propos", **plain())
    assert losses_of(learner, *step_of(learner, torch.full((200,), -1), epoch=1))["psl"] == 0.0


def test_images_that_are_not_clustered_are_only_aligned_and_contrasted():
    learner = learner_of("propos", **plain(propos__contrast_weight=1.0, propos__pull_weight=1.0))
    names = [set(losses_of(learner, *step_of(learner, ALL_LABELS, epoch, clustered=False))) for epoch in (2, 3)]
    assert names == [{"psa", "contrast"}, {"psa"}]


@pytest.mark.parametrize(("epoch", "names"), [(2, {"psa", "psl", "contrast"}), (3, {"psa", "psl", "pull"})])
def test_the_pull_replaces_the_contrast_in_the_last_quarter(epoch, names):
    added = {"propos__contrast_weight": 2.0, "propos__pull_weight": 3.0, "propos__sigma": 0.0}
    learner = learner_of("propos", **plain(**added))
    batch, ctx = step_of(learner, ALL_LABELS, epoch)
    losses = losses_of(learner, batch, ctx)
    (za, zb), (ta, tb), _ = outputs_of(learner.method, batch, ctx)
    assert set(losses) == names

    def pull(online, target):
        labels = ALL_LABELS[:24].numpy()
        return oracle.confident_pull(online, target, np.where(oracle.agreed_on(target, labels, 23), labels, -1))

    if epoch == 2:
        assert losses["contrast"] == pytest.approx(2 * oracle.nt_xent(za, zb, 0.5), rel=1e-4)
    else:
        assert losses["pull"] == pytest.approx(3 * both(pull, (za, zb), (ta, tb)), rel=1e-4)


def test_the_queue_joins_both_prototypes_and_brings_clusters_of_its_own():
    """The queue's images are in clusters that the batch does not have; places without an image take no part."""
    labels = torch.full((200,), -1)
    labels[:24], labels[100:106] = torch.arange(24) % 3, torch.tensor([0, 1, 1, 3, 4, 3])
    of_all = [*labels[:24].tolist(), *labels[100:106].tolist()]
    queued = torch.nn.functional.normalize(torch.tensor(RNG.normal(size=(6, 16)), dtype=torch.float32), dim=1)
    for kind in ("scattered", "uniform"):
        learner = learner_of("propos", **plain(propos__queue_size=8, propos__prototypes=kind))
        learner.method.queue.push(queued, torch.arange(100, 106))
        batch, ctx = step_of(learner, labels, epoch=1)
        found = losses_of(learner, batch, ctx)["psl"]
        projections, targets, _ = outputs_of(learner.method, batch, ctx)
        ours, theirs = ([np.concatenate([view, queued]) for view in pair] for pair in (projections, targets))
        expected = {
            "scattered": both(lambda o, t: oracle.prototype_scattering(o, t, of_all, 0.5), ours, theirs),
            "uniform": np.mean([oracle.prototype_uniformity(view, of_all, 0.5) for view in ours]),
        }
        assert found == pytest.approx(0.1 * expected[kind], rel=1e-4)


def test_an_empty_queue_changes_nothing_and_the_batch_enters_it_after_the_backward_pass():
    losses = []
    for size in (0, 50):
        learner = learner_of("propos", **plain(propos__queue_size=size))
        batch, ctx = step_of(learner, ALL_LABELS, epoch=1)
        losses.append(losses_of(learner, batch, ctx)["psl"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    queue = learner.method.queue
    assert queue["images"].max() == -1
    for action in ctx.later:
        action()
    assert queue["images"][:48].tolist() == [*range(24), *range(24)]
    _, targets, _ = outputs_of(learner.method, batch, ctx)
    np.testing.assert_allclose(queue["vectors"][0], oracle.unit(targets[0][0]), atol=1e-5)


@pytest.mark.parametrize("setting", ["propos__psl_start", "propos__queue_size"])
def test_negative_counts_are_refused(setting):
    with pytest.raises(InputError, match=rf"{setting.replace('__', '.')} = -1: .* greater than or equal to 0"):
        learner_of("propos", **{setting: -1})
