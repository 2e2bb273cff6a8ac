"""What views learn of what is said of their plain images: labels, a graph, and which places go with it."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from propos.networks import Discriminating, Discriminator
from propos.objectives import (
    AnsweredGraph,
    AnsweredLabels,
    LocalInformation,
    Outputs,
    answered_graph,
    answered_labels,
    local_information,
)
from propos.objectives.answered_graph import answered_alike
from propos.objectives.local_information import companions

IMAGES, CLUSTERS, PLACES, CHANNELS = 7, 4, 3, 5
RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.dirichlet(np.full(CLUSTERS, 4.0), size=(2, IMAGES))
ANSWERS = RNG.dirichlet(0.3 * np.ones(CLUSTERS), size=IMAGES)
MAPS = RNG.normal(size=(2, IMAGES, PLACES, CHANNELS))
NOBODY = torch.zeros(IMAGES).long()
ABOVE = 0.7


def outputs_of(first=FIRST, answers=ANSWERS, **more):
    said = torch.as_tensor(first), torch.tensor(SECOND)
    return Outputs(said, said, said, assignments=said, again=torch.as_tensor(answers), **more)


def labels_expected(first, answers=ANSWERS):
    total = 0.0
    for said in (first, SECOND):
        for row, answer in zip(said, answers, strict=True):
            if max(answer) >= ABOVE:
                chances = [p if k == np.argmax(answer) else 1 - p for k, p in enumerate(row)]
                total -= sum(math.log(chance) for chance in chances) / len(chances)
    return total / (2 * len(answers))


def alike_expected(answers=ANSWERS):
    return [[i == j or oracle.cosine(a, b) >= ABOVE for j, b in enumerate(answers)] for i, a in enumerate(answers)]


def graph_expected(first):
    alike, total = alike_expected(), 0.0
    for said in (first, SECOND):
        for i, one in enumerate(said):
            for j, other in enumerate(said):
                near = oracle.cosine(one, other)
                total -= 0.0 if i == j else math.log(near if alike[i][j] else 1 - near)
    return total / (2 * len(first) ** 2)


def score(discriminator, place, said):
    first, second, last = (layer.weight.detach().numpy() for layer in discriminator.children())
    hidden = np.maximum(first @ np.concatenate([place, np.log(said)]), 0)
    return (last @ np.maximum(second @ hidden, 0)).item()


def local_expected(discriminator, first):
    alike, losses = alike_expected(), []
    for said, maps in zip((first, SECOND), MAPS, strict=True):
        own, apart = [], []
        for i, row in enumerate(said):
            along = [(i + step) % IMAGES for step in range(1, IMAGES)]
            like = next((j for j in along if alike[i][j]), i)
            unlike = [j for j in along if not alike[i][j]][:2]
            own += [math.log1p(math.exp(-score(discriminator, place, row))) for j in (i, like) for place in maps[j]]
            apart += [math.log1p(math.exp(score(discriminator, place, row))) for j in unlike for place in maps[j]]
        losses.append(np.mean(own) + np.mean(apart))
    return float(np.mean(losses))


def test_labels_equal_the_oracle_in_value_and_gradient():
    assert 0 < sum(max(answer) >= ABOVE for answer in ANSWERS) < IMAGES
    oracle.check(lambda x: AnsweredLabels(ABOVE)(outputs_of(x), NOBODY), labels_expected, FIRST)


def test_labels_by_hand():
    # The first image was surely in the first cluster, the second nowhere.
    said, answers = torch.tensor([[0.5, 0.25], [0.1, 0.9]]), torch.tensor([[0.9, 0.1], [0.4, 0.6]])
    expected = (math.log(2) + math.log(4 / 3)) / 2 / 2
    assert float(answered_labels(said, answers, 0.9)) == pytest.approx(expected)
    assert float(answered_labels(said, answers, 0.95)) == 0.0


def test_the_graph_equals_the_oracle_in_value_and_gradient():
    joined = np.array(alike_expected())
    assert IMAGES < joined.sum() < IMAGES**2
    oracle.check(lambda x: AnsweredGraph(ABOVE)(outputs_of(x), NOBODY), graph_expected, FIRST)


def test_the_graph_by_hand():
    # Along (1, 0) and (0.6, 0.8): a cosine of 0.6, asked to be 1 or to be 0, twice among four pairs.
    said = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    assert float(answered_graph(said, torch.ones(2, 2).bool())) == pytest.approx(-math.log(0.6) / 2, rel=1e-5)
    assert float(answered_graph(said, torch.eye(2).bool())) == pytest.approx(-math.log(0.4) / 2, rel=1e-5)


def test_who_is_alike_by_hand():
    alike = answered_alike(torch.tensor([[1.0, 0.0], [0.98, 0.02], [0.0, 1.0]]), 0.95)
    assert alike.tolist() == [[True, True, False], [True, True, False], [False, False, True]]


def test_no_gradient_reaches_the_plain_images():
    answers = torch.tensor(ANSWERS, requires_grad=True)
    torch.manual_seed(0)
    more = {"places": tuple(torch.tensor(each) for each in MAPS)}
    more["discriminator"] = Discriminator(CHANNELS, CLUSTERS, Discriminating(6)).double()
    first = torch.tensor(FIRST, requires_grad=True)
    for objective in (AnsweredLabels(ABOVE), AnsweredGraph(ABOVE), LocalInformation(ABOVE)):
        objective(outputs_of(first, answers, **more), NOBODY).backward()
    assert first.grad.abs().sum() > 0
    assert answers.grad is None


def test_views_as_sure_as_can_be_have_a_finite_loss_and_gradient():
    first = torch.eye(CLUSTERS)[[0, 0, 1, 1, 2, 3, 0]].double().requires_grad_()
    outputs = outputs_of(first)
    loss = AnsweredLabels(ABOVE)(outputs, NOBODY) + AnsweredGraph(ABOVE)(outputs, NOBODY)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(first.grad).all()


def test_local_information_equals_the_oracle_in_value_and_gradient():
    torch.manual_seed(0)
    discriminator = Discriminator(CHANNELS, CLUSTERS, Discriminating(6)).double()
    places = tuple(torch.tensor(each) for each in MAPS)

    def ours(said):
        return LocalInformation(ABOVE)(outputs_of(said, places=places, discriminator=discriminator), NOBODY)

    oracle.check(ours, lambda said: local_expected(discriminator, said), FIRST)


def test_local_information_by_hand():
    # Scores of 0 with what is near cost log 2; of the others, one that is there has 0 too, and the second is not there.
    near, others = torch.zeros(1, 2, 3), torch.tensor([[[0.0] * 3, [50.0] * 3]])
    there = torch.tensor([[True, False]])
    assert float(local_information(near, others, there)) == pytest.approx(2 * math.log(2))
    assert float(local_information(near, others, ~there)) == pytest.approx(math.log(2) + 50)
    assert float(local_information(near, others, there & False)) == pytest.approx(math.log(2))


def test_companions_are_the_next_of_the_batch_by_hand():
    # Images 0, 1 and 3 are alike, 2 is by itself; after the last comes the first.
    alike = torch.eye(4).bool()
    for i in (0, 1, 3):
        for j in (0, 1, 3):
            alike[i, j] = True
    near, unlike, there = companions(alike)
    assert near.tolist() == [[0, 1], [1, 3], [2, 2], [3, 0]]
    assert there.tolist() == [[True, False], [True, False], [True, True], [True, False]]
    assert unlike[there].tolist() == [2, 2, 3, 0, 2]
