"""DCCM: its losses by hand and compared with an oracle; the discriminator, its places, and both in a step."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers import oracle
from helpers.recipes import built, of_system, widths
from helpers.small import CPU, digits, quick_config
from propos.methods import dccm, settings_of
from propos.methods.dccm import (
    Discriminator,
    companions,
    graph_loss,
    label_loss,
    local_information,
    local_loss,
    places_of,
    similar_images,
)
from propos.training.e_step import unassigned
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.state import first_state

IMAGES, CLUSTERS, PLACES, CHANNELS = 7, 4, 3, 5
RNG = np.random.default_rng(0)
FIRST = RNG.dirichlet(np.full(CLUSTERS, 4.0), size=IMAGES)
PLAIN = RNG.dirichlet(0.3 * np.ones(CLUSTERS), size=IMAGES)
MAPS = RNG.normal(size=(IMAGES, PLACES, CHANNELS))
ABOVE = 0.7
BATCH = torch.arange(64)


def labels_expected(probabilities):
    total = 0.0
    for row, plain in zip(probabilities, PLAIN, strict=True):
        if max(plain) >= ABOVE:
            chances = [p if k == np.argmax(plain) else 1 - p for k, p in enumerate(row)]
            total -= sum(math.log(chance) for chance in chances) / len(chances)
    return total / IMAGES


def similar_expected():
    return [[i == j or oracle.cosine(a, b) >= ABOVE for j, b in enumerate(PLAIN)] for i, a in enumerate(PLAIN)]


def graph_expected(probabilities):
    similar, total = similar_expected(), 0.0
    for i, one in enumerate(probabilities):
        for j, other in enumerate(probabilities):
            near = oracle.cosine(one, other)
            total -= 0.0 if i == j else math.log(near if similar[i][j] else 1 - near)
    return total / IMAGES**2


def score(discriminator, place, probabilities):
    first, second, last = (layer.weight.detach().numpy() for layer in discriminator.children())
    hidden = np.maximum(first @ np.concatenate([place, np.log(probabilities)]), 0)
    return (last @ np.maximum(second @ hidden, 0)).item()


def local_expected(discriminator, probabilities):
    similar, own, apart = similar_expected(), [], []
    for i, row in enumerate(probabilities):
        along = [(i + step) % IMAGES for step in range(1, IMAGES)]
        like = next((j for j in along if similar[i][j]), i)
        unlike = [j for j in along if not similar[i][j]][:2]
        own += [math.log1p(math.exp(-score(discriminator, place, row))) for j in (i, like) for place in MAPS[j]]
        apart += [math.log1p(math.exp(score(discriminator, place, row))) for j in unlike for place in MAPS[j]]
    return float(np.mean(own) + np.mean(apart))


def discriminator_of(channels=CHANNELS, clusters=CLUSTERS, hidden=6):
    torch.manual_seed(0)
    return Discriminator(channels, clusters, hidden).double()


def test_labels_equal_the_oracle_in_value_and_gradient():
    assert 0 < sum(max(plain) >= ABOVE for plain in PLAIN) < IMAGES
    oracle.check(lambda x: label_loss(x, torch.tensor(PLAIN), ABOVE), labels_expected, FIRST)


def test_labels_by_hand():
    # The first image is confidently in the first cluster, the second in none.
    views, plain = torch.tensor([[0.5, 0.25], [0.1, 0.9]]), torch.tensor([[0.9, 0.1], [0.4, 0.6]])
    expected = (math.log(2) + math.log(4 / 3)) / 2 / 2
    assert float(label_loss(views, plain, 0.9)) == pytest.approx(expected)
    assert float(label_loss(views, plain, 0.95)) == 0.0


def test_the_graph_equals_the_oracle_in_value_and_gradient():
    joined = np.array(similar_expected())
    assert IMAGES < joined.sum() < IMAGES**2
    similar = similar_images(torch.tensor(PLAIN), ABOVE)
    assert similar.tolist() == joined.tolist()
    oracle.check(lambda x: graph_loss(x, similar), graph_expected, FIRST)


def test_the_graph_by_hand():
    # Along (1, 0) and (0.6, 0.8): a cosine of 0.6, which should be 1 or 0, twice among four pairs.
    views = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    assert float(graph_loss(views, torch.ones(2, 2).bool())) == pytest.approx(-math.log(0.6) / 2, rel=1e-5)
    assert float(graph_loss(views, torch.eye(2).bool())) == pytest.approx(-math.log(0.4) / 2, rel=1e-5)


def test_similar_images_by_hand():
    similar = similar_images(torch.tensor([[1.0, 0.0], [0.98, 0.02], [0.0, 1.0]]), 0.95)
    assert similar.tolist() == [[True, True, False], [True, True, False], [False, False, True]]


def test_no_gradient_reaches_the_plain_images():
    plain, first = torch.tensor(PLAIN, requires_grad=True), torch.tensor(FIRST, requires_grad=True)
    similar = similar_images(plain, ABOVE)
    loss = label_loss(first, plain, ABOVE) + graph_loss(first, similar)
    (loss + local_loss(discriminator_of(), torch.tensor(MAPS), first, similar)).backward()
    assert first.grad.abs().sum() > 0
    assert plain.grad is None


def test_views_with_certain_assignments_have_a_finite_loss_and_gradient():
    first = torch.eye(CLUSTERS)[[0, 0, 1, 1, 2, 3, 0]].double().requires_grad_()
    plain = torch.tensor(PLAIN)
    loss = label_loss(first, plain, ABOVE) + graph_loss(first, similar_images(plain, ABOVE))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(first.grad).all()


def test_local_information_equals_the_oracle_in_value_and_gradient():
    discriminator, similar = discriminator_of(), similar_images(torch.tensor(PLAIN), ABOVE)
    oracle.check(
        lambda x: local_loss(discriminator, torch.tensor(MAPS), x, similar),
        lambda x: local_expected(discriminator, x),
        FIRST,
    )


def test_local_information_by_hand():
    # Scores of 0 with positives cost log 2; of the negatives, one that exists has 0 too, and the second does not exist.
    positives, negatives = torch.zeros(1, 2, 3), torch.tensor([[[0.0] * 3, [50.0] * 3]])
    exist = torch.tensor([[True, False]])
    assert float(local_information(positives, negatives, exist)) == pytest.approx(2 * math.log(2))
    assert float(local_information(positives, negatives, ~exist)) == pytest.approx(math.log(2) + 50)
    assert float(local_information(positives, negatives, exist & False)) == pytest.approx(math.log(2))


def test_companions_are_the_next_of_the_batch_by_hand():
    # Images 0, 1 and 3 are similar, 2 is like no other; after the last comes the first.
    similar = torch.eye(4).bool()
    for i in (0, 1, 3):
        for j in (0, 1, 3):
            similar[i, j] = True
    positives, negatives, exist = companions(similar)
    assert positives.tolist() == [[0, 1], [1, 3], [2, 2], [3, 0]]
    assert exist.tolist() == [[True, False], [True, False], [True, True], [True, False]]
    assert negatives[exist].tolist() == [2, 2, 3, 0, 2]


def test_the_discriminator_scores_as_convolutions_over_maps_joined_with_log_probabilities():
    draw = torch.Generator().manual_seed(1)
    maps, log_probs = torch.randn(4, 6, 3, 2, generator=draw), torch.randn(4, 5, generator=draw)
    others = torch.tensor([[0, 2], [1, 1], [3, 0], [2, 3]])
    discriminator = Discriminator(6, 5, 7)
    found = discriminator(maps.flatten(2).transpose(1, 2), log_probs, others)
    layers = [layer.weight[..., None, None] for layer in (discriminator.first, discriminator.second)]
    for image, row in enumerate(others):
        for place, other in enumerate(row):
            both = torch.cat([maps[other], log_probs[image, :, None, None].expand(-1, 3, 2)])[None]
            hidden = F.relu(F.conv2d(F.relu(F.conv2d(both, layers[0])), layers[1]))
            expected = F.conv2d(hidden, discriminator.score.weight[..., None, None])
            torch.testing.assert_close(found[image, place], expected.flatten())


def test_places_are_averages_of_a_map_by_hand():
    maps = torch.tensor([[0.0, 2.0, 5.0, 5.0], [4.0, 6.0, 5.0, 5.0], [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 8.0]])
    both = torch.stack([maps, 2 * maps])[None]
    assert places_of(both)[0].tolist() == [[3.0, 6.0], [5.0, 10.0], [1.0, 2.0], [2.0, 4.0]]


def test_there_are_at_most_sixteen_places_a_side_and_at_least_one():
    assert [places_of(torch.zeros(1, 2, side, side)).shape[1] for side in (1, 3, 8, 32, 56, 96)] == [
        *(1, 1, 16, 256, 196, 256)
    ]


def test_the_discriminator_changes_nothing_that_is_drawn_before_it():
    dccm = build_learner(quick_config(method="dccm"), digits(), CPU).method
    iic = build_learner(quick_config(method="iic", heads=1), digits(), CPU).method
    ours, theirs = dccm.online.backbone.state_dict(), iic.online.backbone.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours.keys() | theirs.keys())
    assert torch.equal(dccm.online.projector[0].weight, iic.online.projector[0].weight)
    assert torch.equal(dccm.head[1].weight, iic.heads.each[0][0].weight)


def started(**settings):
    source = digits()
    learner = build_learner(quick_config(source, method="dccm", **settings), source, CPU)
    state = first_state(learner)
    state.partition = unassigned(200, CPU)
    return learner, source, state


def test_the_discriminator_reads_the_places_of_the_first_stages_maps_of_both_views():
    learner, source, state = started()
    maps, places = [], []
    layer = learner.method.online.backbone.layer1[-1]
    layer.register_forward_hook(lambda _, __, made: maps.append(made.detach().clone()))
    learner.method.discriminator.register_forward_hook(lambda _, given, __: places.append(given[0].detach()))
    m_step(learner, source, BATCH, state)
    assert (len(maps), len(places)) == (3, 2)  # the third maps are those of the plain view
    for of_view, seen in zip(maps, places, strict=False):
        torch.testing.assert_close(seen, F.avg_pool2d(of_view, 2).flatten(2).transpose(1, 2))


@pytest.mark.full
def test_the_discriminator_learns_to_tell_places_of_similar_images_from_those_of_others():
    learner, source, state = started(train__lr=0.02, train__epochs=4)
    before = [parameter.detach().clone() for parameter in learner.method.discriminator.parameters()]
    losses = [float(m_step(learner, source, BATCH, state)["local"]) / 0.05 for _ in range(40)]
    after = learner.method.discriminator.parameters()
    assert all(not torch.equal(one, other) for one, other in zip(before, after, strict=True))
    # One that scores everything alike has a loss of 2 log 2.
    assert sum(losses[-5:]) / 5 < 2 * math.log(2) - 0.02


@pytest.mark.full
def test_plain_images_are_assigned_by_the_batchs_statistics_from_the_first_step_on():
    """The running statistics hold nothing yet: by them a network would put all images into one cluster."""
    learner, source, state = started(network__backbone="resnet34")
    logits, learnt = [], []
    learner.method.head.register_forward_hook(lambda _, __, made: logits.append(made.detach()))
    learner.method.head.register_forward_hook(lambda _, __, made: learnt.append(made.requires_grad))
    m_step(learner, source, BATCH, state)
    plain = logits[2].softmax(dim=1)
    assert learnt == [True, True, False]
    assert plain.shape == (64, 10)
    assert plain.max() < 0.9
    assert len(plain.argmax(dim=1).unique()) >= 8


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch's own, which it hides where warnings are none
def test_a_compiled_backbone_gives_the_same_losses_through_both_its_halves():
    made, compiled = [], []

    def counting(graph, _):
        made.append(graph)
        return graph.forward

    for backend in (None, counting):
        learner, source, state = started()
        if backend is not None:
            learner.method.compile_networks(backend=backend)
        losses = m_step(learner, source, BATCH, state)
        compiled.append((losses, learner.method.eval()))
    # With a gradient, for the views: each half of the backbone, projector, head; without one, for the plain images:
    # the backbone, projector, head.
    assert len(made) == 7
    (ours, plain), (theirs, fast) = compiled
    assert ours.keys() == theirs.keys()
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name])
    views = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(plain.online.backbone(views), fast.online.backbone(views), rtol=1e-3, atol=1e-4)
    torch._dynamo.reset()


def test_dccm_has_its_own_settings():
    config = of_system("dccm-cifar-10")
    networks, train, views = built(config), config.train, config.views
    assert (dccm.LABELS, dccm.GRAPH, dccm.LOCAL) == (5.0, 1.0, 0.05)
    assert (settings_of(config).confidence, dccm.SIMILAR) == (0.9, 0.95)
    assert (widths(networks.online.projector), widths(networks.head)) == ((64,), (10,))
    assert widths(networks.discriminator) == (networks.online.features, networks.online.features, 1)
    assert train.lr * train.batch_size / 256 == pytest.approx(1e-4)
    assert (train.batch_size, train.epochs, train.schedule, train.weight_decay) == (32, 2000, "constant", 0.0)
    assert train.optimiser == "adam"
    assert (views.rotation, views.flip, views.crop_scale, views.crop_ratio) == (20.0, 0.5, (0.72, 1.0), (1.0, 1.0))
    assert (views.jitter, views.brightness, views.contrast) == (1.0, 0.1, 0.0)
    assert (views.saturation, views.hue, views.grey) == (0.0, 0.0, 0.0)
