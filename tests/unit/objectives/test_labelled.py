"""The losses of images of which some have labels: beside plain loops and torch, and by hand."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from propos.objectives import (
    EachHead,
    GivenLabels,
    LabelledContrast,
    Outputs,
    SeveralLabels,
    given_labels,
    labelled_contrast,
    nt_xent,
    several_labels,
)

from helpers import oracle

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(2, 7, 4))
LABELS = torch.tensor([0, 2, 0, -1, 2, 0, -1])
SCORES = RNG.normal(size=(7, 5))


def test_the_contrast_beside_plain_loops():
    oracle.check(
        lambda x: labelled_contrast(x, torch.tensor(SECOND), LABELS, 0.5),
        lambda x: oracle.labelled_contrast(x, SECOND, LABELS.tolist(), 0.5),
        FIRST,
    )


def test_the_contrast_by_hand():
    # Three images along the axes, alike in both views: each is told from the four rows of the two others; of the two
    # that share a label, from the two rows of the third.
    axes = torch.eye(3, dtype=torch.float64)
    alone, spared = math.log(1 + 4 * math.exp(-1)), math.log(1 + 2 * math.exp(-1))
    assert float(labelled_contrast(axes, axes, torch.tensor([-1, -1, -1]), 1.0)) == pytest.approx(alone)
    assert float(labelled_contrast(axes, axes, torch.tensor([1, 0, 1]), 1.0)) == pytest.approx((2 * spared + alone) / 3)


def test_without_labels_it_is_the_plain_contrast_to_the_bit():
    first, second = torch.tensor(FIRST), torch.tensor(SECOND)
    nobody = torch.full((7,), -1)
    assert torch.equal(labelled_contrast(first, second, nobody, 0.5), nt_xent(first, second, 0.5))


def test_a_batch_of_one_label_pulls_views_together_and_tells_nothing_apart():
    first = torch.tensor(FIRST, requires_grad=True)
    loss = labelled_contrast(first, torch.tensor(SECOND), torch.zeros(7, dtype=torch.long), 0.5)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert bool(torch.isfinite(first.grad).all())


def test_given_labels_are_torchs_cross_entropy_weighted_by_class():
    scores = torch.tensor(SCORES, requires_grad=True)
    known = LABELS >= 0
    counts = torch.bincount(LABELS[known], minlength=5)
    weights = known.sum() / counts.clamp(min=1).double()
    expected = F.cross_entropy(scores[known], LABELS[known], weight=weights)
    (theirs,) = torch.autograd.grad(expected, scores)
    ours = given_labels(scores.softmax(dim=1), LABELS)
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(torch.autograd.grad(ours, scores)[0], theirs)


def test_given_labels_by_hand():
    # Two images of label 0 at chances of ½ and ¼, one of label 1 at ¼, one of no label.
    assignments = torch.tensor([[0.5, 0.5], [0.25, 0.75], [0.75, 0.25], [0.0, 1.0]])
    labels = torch.tensor([0, 0, 1, -1])
    assert float(given_labels(assignments, labels)) == pytest.approx((1.5 * math.log(2) + 2 * math.log(2)) / 2)


def test_without_labels_nothing_is_asked_for_and_what_is_impossible_is_finite():
    assignments = torch.tensor([[1.0, 0.0]], requires_grad=True)
    assert float(given_labels(assignments, torch.tensor([-1])).detach()) == 0.0
    loss = given_labels(assignments, torch.tensor([1]))
    loss.backward()
    assert math.isfinite(float(loss.detach()))
    assert bool(torch.isfinite(assignments.grad).all())


def test_the_modules_read_the_stages_labels_not_the_clusters():
    pair = torch.tensor(FIRST), torch.tensor(SECOND)
    assigned = torch.full((7, 5), 0.2, dtype=torch.float64), torch.tensor(SCORES).softmax(dim=1)
    outputs = Outputs(pair, pair, pair, assignments=assigned, prepared={"labels": LABELS})
    clusters = torch.zeros(7, dtype=torch.long)
    assert torch.equal(LabelledContrast(0.5)(outputs, clusters), labelled_contrast(*pair, LABELS, 0.5))
    assert torch.equal(GivenLabels()(outputs, clusters), given_labels(assigned[1], LABELS))  # of the strong view
    assert torch.equal(GivenLabels(first=True)(outputs, clusters), given_labels(assigned[0], LABELS))


SEVERAL = RNG.random(size=(7, 5)) < 0.4  # some images have several labels
SEVERAL[2] = False  # and one has none


def test_several_labels_beside_plain_loops():
    assert SEVERAL.sum(axis=1).max() > 1
    chances = torch.tensor(SCORES).softmax(dim=1).numpy()
    oracle.check(
        lambda x: several_labels(x, torch.tensor(SEVERAL)), lambda x: oracle.several_labels(x, SEVERAL), chances
    )


def test_several_labels_by_hand():
    # A sure image has odds of e at its label; one of both labels costs as much at each as chances of ½ do.
    sure, torn, nobody = [1.0, 0.0], [0.5, 0.5], [0.1, 0.9]
    labels = torch.tensor([[True, False], [True, True], [False, False]])
    expected = (math.log(1 + math.exp(-1)) + 2 * math.log(2)) / 3
    assert float(several_labels(torch.tensor([sure, torn, nobody]), labels)) == pytest.approx(expected)
    assert float(several_labels(torch.tensor([sure]), labels[2:])) == 0.0


def test_each_head_has_several_labels_of_its_own():
    first, second = (torch.tensor(RNG.normal(size=(7, 2, 5))).softmax(dim=2) for _ in range(2))
    table = torch.stack([torch.tensor(SEVERAL), ~torch.tensor(SEVERAL)], dim=1)
    pair = torch.tensor(FIRST), torch.tensor(SECOND)
    outputs = Outputs(pair, pair, pair, assignments=(first, second), prepared={"prototype labels": table})
    found = EachHead(SeveralLabels()).by_head(outputs, LABELS)
    expected = [sum(several_labels(view[:, head], table[:, head]) for view in (first, second)) / 2 for head in (0, 1)]
    torch.testing.assert_close(found, torch.stack(expected))
