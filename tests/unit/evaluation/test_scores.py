import itertools

import numpy as np
import pytest
from sklearn import metrics

from propos import evaluation
from propos.evaluation.expected_mutual_information import expected_mutual_information

LABELS = np.array([0, 0, 0, 1, 1, 2])
CLUSTERS = np.array([5, 5, 7, 7, 7, 9])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (evaluation.nmi, metrics.normalized_mutual_info_score),
        (evaluation.ami, metrics.adjusted_mutual_info_score),
        (evaluation.ari, metrics.adjusted_rand_score),
    ],
)
def test_information_scores_equal_scikit_learns(ours, theirs):
    rng = np.random.default_rng(0)
    for classes, clusters in ((3, 3), (3, 7), (7, 3), (1, 4)):
        labels, found = rng.integers(classes, size=200), rng.integers(clusters, size=200)
        assert ours(labels, found) == pytest.approx(theirs(labels, found), abs=1e-12)


@pytest.mark.parametrize(
    ("images", "classes", "clusters"),
    [(5, 3, 4), (60, 60, 60), (5000, 2, 2), (5000, 40, 3), (4000, 200, 300), (20_000, 2, 1500)],
)
def test_scores_of_many_shapes_equal_scikit_learns(images, classes, clusters):
    rng = np.random.default_rng(classes)
    labels = (rng.random(images) ** 2 * classes).astype(int)
    found = np.where(rng.random(images) < 0.4, labels % clusters, rng.integers(clusters, size=images))
    ours = evaluation.scores(labels.astype(str), found)
    assert ours["nmi"] == pytest.approx(metrics.normalized_mutual_info_score(labels, found), abs=1e-10)
    assert ours["ami"] == pytest.approx(metrics.adjusted_mutual_info_score(labels, found), abs=1e-9)
    assert ours["ari"] == metrics.adjusted_rand_score(labels, found)
    assert ours == evaluation.scores(evaluation.numbered(labels.astype(str)), found)


def test_the_expected_information_is_the_mean_over_all_assignments():
    """Four images, two labels of two, clusters of three and one: each permutation by itself."""
    labels, found = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])
    ways = [metrics.mutual_info_score(labels, np.array(way)) for way in itertools.permutations(found)]
    expected = expected_mutual_information(np.array([2, 2]), np.array([3, 1]))
    assert expected == pytest.approx(np.mean(ways), abs=1e-12)


def test_accuracy_matches_clusters_to_labels_by_hand():
    # 5→0 takes 2 of 3, 7→1 takes 2 of 2, 9→2 takes 1 of 1: 5 of 6.
    assert evaluation.accuracy(LABELS, CLUSTERS) == pytest.approx(5 / 6)


def test_accuracy_with_more_clusters_than_labels_counts_the_unmatched_as_wrong():
    # Labels a, b; clusters 0 (2 a), 1 (1 a), 2 (3 b): match a→0, b→2; cluster 1's image is wrong.
    assert evaluation.accuracy(np.array(list("aaabbb")), np.array([0, 0, 1, 2, 2, 2])) == pytest.approx(5 / 6)


def test_accuracy_with_fewer_clusters_than_labels_counts_the_unmatched_as_wrong():
    assert evaluation.accuracy(np.array([0, 0, 0, 1, 2, 2]), np.array([0, 0, 0, 0, 1, 1])) == pytest.approx(5 / 6)


def test_scores_refuse_lengths_that_differ():
    with pytest.raises(ValueError, match="one of each per image"):
        evaluation.nmi(LABELS, CLUSTERS[:-1])


def test_matched_confusion_puts_matches_on_the_diagonal():
    confusion = evaluation.matched_confusion(LABELS, CLUSTERS)
    assert confusion.counts.tolist() == [[2, 1, 0], [0, 2, 0], [0, 0, 1]]
    assert confusion.labels.tolist() == [0, 1, 2]
    assert confusion.clusters.tolist() == [5, 7, 9]


def test_matched_confusion_puts_unmatched_clusters_last():
    confusion = evaluation.matched_confusion(np.array([0, 0, 0, 1]), np.array([2, 0, 0, 1]))
    assert confusion.clusters.tolist() == [0, 1, 2]
    assert confusion.counts.tolist() == [[2, 0, 1], [0, 1, 0]]


def test_uniformity_std_is_one_over_root_d_on_the_sphere_and_zero_when_collapsed():
    points = np.random.default_rng(0).normal(size=(20_000, 16))
    assert evaluation.uniformity_std(points) == pytest.approx(1 / 4, rel=0.01)
    assert evaluation.uniformity_std(np.ones((10, 4))) == pytest.approx(0, abs=1e-12)


def test_uniformity_std_by_hand_ignores_lengths():
    # Unit vectors (1, 0) and (0, 1): each dimension has values 1 and 0, standard deviation 0.5.
    assert evaluation.uniformity_std(np.array([[3.0, 0.0], [0.0, 0.1]])) == pytest.approx(0.5)


def test_imbalance_ratio_is_smallest_over_largest_and_counts_empty_clusters():
    clusters = np.array([0, 0, 0, 1])
    assert evaluation.cluster_sizes(clusters, 3).tolist() == [3, 1, 0]
    assert evaluation.imbalance_ratio(clusters, 2) == pytest.approx(1 / 3)
    assert evaluation.imbalance_ratio(clusters, 3) == 0
