import numpy as np

from propos.review.report.problems import find_outliers, find_problems
from propos.review.report.similar import Similar
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
    counts = find_problems(table, Similar([[0, 1]]), [("x.png", "damaged")]).counts
    assert counts == {"outliers": 0, "exact": 1, "near": 0, "bursts": 0, "unreadable": 1, "lowConfidence": 1}
