"""Intervals from a stratified sample, compared with scipy's hypergeometric distribution and with repeated draws."""

import numpy as np
import pytest
from scipy.stats import hypergeom

from propos.evaluation.intervals import Strata, estimated_rates, spread, wrong_interval


def strata(*clusters):
    return Strata(*np.array(clusters).T)


@pytest.mark.parametrize(("size", "drawn", "wrong"), [(200, 50, 3), (40, 12, 0), (30, 10, 10), (900, 60, 20)])
def test_one_cluster_has_the_mid_p_interval_of_the_hypergeometric_distribution(size, drawn, wrong):
    def admitted(total):
        exactly = hypergeom.pmf(wrong, size, total, drawn) / 2
        few = hypergeom.cdf(wrong - 1, size, total, drawn) + exactly
        many = hypergeom.sf(wrong, size, total, drawn) + exactly
        return few > 0.025 and many > 0.025

    totals = [total for total in range(wrong, size - drawn + wrong + 1) if admitted(total)]
    assert wrong_interval(strata((size, drawn, wrong))) == (totals[0], totals[-1])


def test_a_complete_check_leaves_no_doubt_and_none_leaves_all():
    assert wrong_interval(strata((10, 10, 3), (5, 5, 0))) == (3, 3)
    assert wrong_interval(strata((10, 0, 0), (5, 0, 0))) == (0, 15)


def test_clusters_that_differ_make_the_interval_shorter_than_if_all_were_one():
    apart = wrong_interval(strata((500, 50, 0), (500, 50, 40)))
    together = wrong_interval(strata((1_000, 100, 40)))
    assert together[0] < apart[0] < 400 < apart[1] < together[1]


def test_rates_are_drawn_towards_the_others_the_more_the_fewer_were_checked():
    few, many, bad = estimated_rates(strata((100, 2, 0), (100, 60, 0), (100, 60, 30)))
    assert 0 < many < 0.05 < few < bad < 0.5


def test_a_total_is_divided_by_the_odds_of_the_clusters():
    sizes = np.array([100, 100])
    assert spread(50, sizes, np.array([0.2, 0.2])).tolist() == [25, 25]
    # Odds of 1/9 and 1 become 1/3 and 3: 25 and 75 of a hundred.
    assert spread(100, sizes, np.array([0.1, 0.5])).tolist() == [25, 75]
    assert spread(0, sizes, np.array([0.1, 0.5])).tolist() == [0, 0]
    assert spread(200, sizes, np.array([0.1, 0.5])).tolist() == [100, 100]


@pytest.mark.parametrize("wrong", [[2, 1, 40, 3, 1], [20, 5, 60, 10, 25]])
def test_intervals_hold_the_truth_as_often_as_they_say(wrong):
    rng = np.random.default_rng(0)
    sizes, wrong = np.array([400, 200, 150, 100, 60]), np.array(wrong)
    holds = 0
    for _ in range(200):
        drawn = np.floor(sizes / 6 + rng.random(5)).astype(int)
        low, high = wrong_interval(Strata(sizes, drawn, rng.hypergeometric(wrong, sizes - wrong, drawn)))
        holds += low <= wrong.sum() <= high
    assert 0.91 <= holds / 200 <= 0.99  # benchmarks/trust.py measures it closely
