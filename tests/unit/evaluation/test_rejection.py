"""Limits from a run's own images, and groups of rejected images, with values worked out by hand."""

import numpy as np
import pytest

from propos.common.errors import InputError
from propos.evaluation.rejection import distance_limits, find_kinds, least_cosine, parse_share


def test_a_cluster_s_limit_is_its_median_and_a_shared_number_of_its_spreads():
    # Distances 1 to 9 around 5, with a median deviation of 2, and the same ten times as far apart.
    near, far = np.arange(1.0, 10.0), 10 * np.arange(1.0, 10.0)
    cluster = np.repeat([4, 7], 9)
    limits = distance_limits(cluster, np.concatenate([near, far]), np.array([4, 7, 8]), 0.2)
    # Scores -2, -1.5 … 2, each twice: the 16th of 18, as (18 + 1) · 0.8 = 15.2, is 1.5 spreads.
    assert limits.tolist() == [8.0, 80.0, -np.inf]


@pytest.mark.parametrize("share", [0.01, 0.05])
def test_the_share_of_new_images_of_known_kinds_that_is_rejected_is_the_one_that_was_asked_for(share):
    rng = np.random.default_rng(0)
    cluster, scale = rng.integers(0, 5, 5_000), np.array([1.0, 2.0, 0.5, 3.0, 1.0])
    limits = distance_limits(cluster, rng.gamma(4, scale[cluster]), np.arange(5), share)
    new = rng.integers(0, 5, 20_000)
    rejected = rng.gamma(4, scale[new]) > limits[new]
    assert rejected.mean() == pytest.approx(share, rel=0.3)


def test_rejected_images_are_grouped_by_their_mean_cosine_and_small_groups_are_none():
    rng = np.random.default_rng(0)
    kinds = np.repeat(np.eye(4)[:3], [12, 8, 4], axis=0) + rng.normal(0, 0.05, (24, 4))
    order = rng.permutation(24)
    groups = find_kinds((kinds / np.linalg.norm(kinds, axis=1, keepdims=True))[order], 0.8)
    assert [sorted(order[group]) for group in groups] == [list(range(12)), list(range(12, 20))]
    assert find_kinds(kinds[:4], 0.8) == []


def test_images_of_one_kind_are_as_alike_as_in_a_loose_cluster():
    distance, cluster = np.array([0.1, 0.1, 0.3, 0.3, 0.9]), np.array([0, 0, 1, 1, -1])
    # Mean cosines 0.9 and 0.7 to the prototypes: 0.81 and 0.49 to each other; the lower quarter lies between.
    assert least_cosine(distance, cluster) == pytest.approx(0.49 + 0.25 * 0.32)


def test_a_share_is_a_percentage():
    assert parse_share("1%") == 0.01
    assert parse_share("2.5%") == 0.025
    for wrong in ("0.01", "0%", "60%", "many"):
        with pytest.raises(InputError, match="such as 1%"):
            parse_share(wrong)
