import numpy as np

from propos.review.report.duplicates import exact_groups, near_groups
from propos.review.report.problems import find_outliers, find_problems
from propos.runs import JUNK, ImageTable


def test_outliers_are_far_for_their_own_cluster():
    # Cluster 0 is tight, so 0.5 is far in it; in the wide cluster 1 it is not.
    near, wide = [0.10, 0.11, 0.12, 0.13, 0.14, 0.5], [0.1, 0.3, 0.5, 0.7, 0.5]
    cluster = np.array([0] * 6 + [1] * 5)
    assert find_outliers(cluster, np.array(near + wide)).tolist() == [5]


def test_a_cluster_of_one_distance_has_no_outliers():
    assert find_outliers(np.zeros(4, int), np.full(4, 0.2)).tolist() == []


def test_low_confidences_are_counted_without_what_was_set_aside():
    names, cluster = ["a", "b", "c", "d"], np.array([0, 0, 0, JUNK])
    table = ImageTable(names, cluster, np.array([0.9, 0.4, 0.5, 0.1]), np.full(4, 0.2))
    counts = find_problems(table, [[0, 1]], [], [("x.png", "damaged")]).counts
    assert counts == {"outliers": 0, "exact": 1, "near": 0, "unreadable": 1, "lowConfidence": 1}


def test_same_digests_are_exact_copies():
    assert exact_groups([b"x", b"y", None, b"x", None]) == [[0, 3]]


def unit(*values):
    vector = np.array(values, np.float32)
    return vector / np.linalg.norm(vector)


def test_near_copies_share_a_cluster_and_a_sketch():
    sketches = np.stack([unit(1, 0, 0), unit(1, 0.05, 0), unit(0, 1, 0), unit(1, 0.05, 0), np.zeros(3)])
    sketches = np.concatenate([sketches, np.zeros((1, 3))]).astype(np.float32)
    assert near_groups(sketches, np.array([0, 0, 0, 1, 0, 0]), exact=[]) == [[0, 1]]


def test_exact_copies_are_not_named_again_as_near_ones():
    sketches = np.stack([unit(1, 0, 0), unit(1, 0, 0), unit(0, 1, 0)])
    assert near_groups(sketches, np.zeros(3, int), exact=[[0, 1]]) == []


def test_near_copies_are_found_across_blocks(monkeypatch):
    monkeypatch.setattr("propos.review.report.duplicates.BLOCK", 8)
    rng = np.random.default_rng(0)
    one = rng.normal(size=(40, 12)).astype(np.float32)
    sketches = np.concatenate([one, one + 0.01 * rng.normal(size=one.shape)]).astype(np.float32)
    sketches /= np.linalg.norm(sketches, axis=1, keepdims=True)
    assert near_groups(sketches, np.zeros(80, int), exact=[]) == [[number, number + 40] for number in range(40)]
