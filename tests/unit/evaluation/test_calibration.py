"""Calibrated confidence, compared with probabilities that are known because answers are drawn from them."""

import numpy as np
import pytest
from scipy.special import expit, logit

from propos.evaluation.calibration import FEWEST, SCALE, calibrate, calibration_error


def drawn(count, slope, intercepts, seed=0):
    rng = np.random.default_rng(seed)
    confidence, cluster = rng.uniform(0.2, 0.99, count), rng.integers(0, len(intercepts), count)
    probability = expit(slope * logit(confidence) + np.array(intercepts)[cluster])
    return confidence, cluster, probability, rng.random(count) < probability


def none(values):
    return np.zeros(len(values))


def test_probabilities_approach_those_that_answers_were_drawn_from():
    confidence, cluster, probability, right = drawn(4_000, 0.5, [1.0, -1.0, 0.0])
    fitted = calibrate(confidence, cluster, none(right), right)
    assert np.abs(fitted.probability(confidence, cluster, none(cluster)) - probability).max() < 0.08
    assert fitted.slope == pytest.approx(0.5, abs=0.1)


def test_labels_that_restarts_change_are_less_probable_where_answers_say_so():
    rng = np.random.default_rng(0)
    apart, cluster = rng.integers(0, 9, 4_000) / 8, np.zeros(4_000, int)
    probability = expit(2 - 4 * apart)
    fitted = calibrate(np.full(4_000, 0.5), cluster, apart, rng.random(4_000) < probability)
    assert np.abs(fitted.probability(np.full(4_000, 0.5), cluster, apart) - probability).max() < 0.04
    assert SCALE * fitted.effect == pytest.approx(-4, abs=0.4)


def test_the_fit_is_the_minimum_of_the_penalised_likelihood():
    confidence, cluster, _, right = drawn(60, 0.5, [1.0, -1.0])
    apart = np.random.default_rng(1).integers(0, 9, 60) / 8
    fitted = calibrate(confidence, cluster, apart, right)

    def loss(slope, intercept, offsets, effect=fitted.effect):
        odds = slope * logit(confidence) + effect * SCALE * apart + intercept + np.array(offsets)[cluster]
        total = np.log1p(np.exp(np.where(right, -odds, odds))).sum()
        middle = slope * logit(confidence).mean() + effect * SCALE * apart.mean() + intercept
        total += (np.log1p(np.exp(-middle)) + np.log1p(np.exp(middle))) / 2
        return total + (np.log(slope) ** 2 + effect**2 + np.square(offsets).sum()) / 2

    best = [fitted.slope, fitted.intercept, [fitted.offsets[0], fitted.offsets[1]]]
    least = loss(*best)
    for step in (-0.02, 0.02):
        assert loss(best[0] + step, *best[1:]) > least
        assert loss(*best, fitted.effect + step) > least
        assert loss(best[0], best[1] + step, best[2]) > least
        assert loss(*best[:2], [best[2][0] + step, best[2][1]]) > least


def test_a_cluster_without_answers_has_no_offset_and_all_right_is_not_certain():
    confidence, cluster, _, _ = drawn(FEWEST, 1.0, [0.0])
    fitted = calibrate(confidence, cluster, none(cluster), np.ones(FEWEST, bool))
    probability = fitted.probability(np.array([0.5, 0.5, 1.0]), np.array([0, 7, 0]), np.zeros(3))
    assert 0.9 < probability[1] <= probability[0] < probability[2] < 1.0


def test_the_calibration_error_is_the_mean_distance_of_the_bins():
    # Two bins: 0.2 said and a half right; 0.8 said and all right.
    probability = np.array([0.2, 0.2, 0.8, 0.8])
    assert calibration_error(probability, np.array([True, False, True, True]), bins=2) == pytest.approx(0.25)
    assert calibration_error(np.ones(4), np.ones(4, bool)) == 0.0
