import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from propos.clustering import silhouette as of_points
from propos.common.errors import InputError
from propos.evaluation.silhouette import silhouette


def blobs(count, dimension, clusters, spread, seed=0):
    rng = np.random.default_rng(seed)
    own = rng.integers(clusters, size=count)
    return rng.normal(size=(clusters, dimension))[own] + spread * rng.normal(size=(count, dimension)), own


@pytest.mark.parametrize(("clusters", "spread"), [(2, 0.1), (5, 1.0), (40, 3.0)])
def test_it_is_scikit_learns_cosine_silhouette(clusters, spread):
    points, own = blobs(300, 8, clusters, spread)
    assert silhouette(points, own) == pytest.approx(silhouette_score(points, own, metric="cosine"), abs=1e-9)


def test_lengths_float32_and_the_numbers_of_clusters_do_not_matter():
    points, own = blobs(200, 6, 4, 0.8)
    expected = silhouette(points, own)
    scaled = (points * np.random.default_rng(1).uniform(0.1, 10, size=(200, 1))).astype(np.float32)
    assert silhouette(scaled, own * 7 - 3) == pytest.approx(expected, abs=1e-6)


def test_by_hand():
    # Cosine distances: 0 within {a, b}, 1 to c, 2 to d; c is alone with d at a distance of 1.
    points = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    own = np.array([0, 0, 1, 1])
    # a and b: a = 0, so 1. c: a = 1, b = 1, so 0. d: a = 1, b = 2, so 1/2.
    assert silhouette(points, own) == pytest.approx((1 + 1 + 0 + 0.5) / 4)


def test_an_image_alone_in_its_cluster_counts_nothing():
    points, own = blobs(60, 5, 3, 0.5)
    own[0] = 9
    assert silhouette(points, own) == pytest.approx(silhouette_score(points, own, metric="cosine"), abs=1e-9)
    assert silhouette(points[:3], np.arange(3)) == 0


def test_images_that_are_all_the_same_have_no_silhouette_to_speak_of():
    assert silhouette(np.full((10, 7), 0.3), np.arange(10) % 2) == 0


def test_more_images_than_a_chunk_holds_give_the_same(monkeypatch):
    monkeypatch.setattr(of_points, "CHUNK_VALUES", 100)
    points, own = blobs(130, 8, 3, 1.0)
    assert silhouette(points, own) == pytest.approx(silhouette_score(points, own, metric="cosine"), abs=1e-9)


def test_one_cluster_is_refused():
    with pytest.raises(InputError, match="one cluster"):
        silhouette(np.eye(3), np.zeros(3, dtype=int))
