"""Search by example, against orders worked out by hand and scikit-learn's classifier."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from propos.evaluation import retrieval
from propos.evaluation.retrieval import Direction, classify, highest, towards

# Unit vectors at 0°, 90°, 180°, 60° and 0° again.
POINTS = np.array([[1, 0], [0, 1], [-1, 0], [0.5, np.sqrt(0.75)], [1, 0]], dtype=np.float32)


@pytest.mark.parametrize("block", [1, 2, 100])
def test_the_nearest_come_first_and_equal_ones_by_row(monkeypatch, block):
    monkeypatch.setattr(retrieval, "BLOCK", block)
    rows, cosines = highest(POINTS, towards(POINTS[:1]), 5)
    assert rows.tolist() == [0, 4, 3, 1, 2]
    assert cosines == pytest.approx([1, 1, 0.5, 0, -1], abs=1e-6)
    skip = np.array([True, False, False, True, False])
    assert highest(POINTS, towards(POINTS[:1]), 2, skip)[0].tolist() == [4, 1]


def test_several_images_are_searched_by_their_mean():
    # The mean of 0° and 90° points to 45°: 60° is 15° away, the two are 45° away.
    rows, cosines = highest(POINTS, towards(POINTS[:2]), 3)
    assert rows.tolist() == [3, 0, 1]
    assert cosines == pytest.approx(np.cos(np.radians([15, 45, 45])), abs=1e-6)


@pytest.mark.parametrize(("wanted", "unwanted", "apart"), [(20, 200, 0.3), (300, 40, 0.1), (2, 1, 0.5)])
def test_the_classifier_is_a_logistic_regression_of_balanced_classes(wanted, unwanted, apart):
    draw = np.random.default_rng(0)
    points = draw.normal(size=(wanted + unwanted, 16))
    points[:wanted] += apart
    points = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    found = classify(points[:wanted], points[wanted:])
    expected = LogisticRegression(C=retrieval.STRENGTH, class_weight="balanced", tol=1e-10, max_iter=10_000)
    expected.fit(points.astype(np.float64), np.repeat([1, 0], [wanted, unwanted]))
    assert found.weight == pytest.approx(expected.coef_[0], abs=2e-3)
    chances = found.probabilities(points @ found.weight)
    assert chances == pytest.approx(expected.predict_proba(points.astype(np.float64))[:, 1], abs=1e-3)


def test_without_answers_there_are_no_probabilities():
    assert Direction(POINTS[0]).probabilities(np.zeros(3)) is None
