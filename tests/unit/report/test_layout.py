import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from propos.review.report import layout


def blobs(count=90, clusters=3):
    """Unit vectors in three far groups, and which group each is of."""
    rng = np.random.default_rng(0)
    cluster = np.arange(count) % clusters
    points = np.eye(8)[cluster] * 4 + rng.normal(0, 0.3, (count, 8))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32), cluster


@pytest.fixture(autouse=True)
def few_iterations(monkeypatch):
    monkeypatch.setattr(layout, "FEW_EARLY", 60)
    monkeypatch.setattr(layout, "FEW_LATE", 60)


def own_group_share(place, cluster):
    """The share of images whose nearest neighbour on the map is of their own group."""
    nearest = NearestNeighbors(n_neighbors=2).fit(place).kneighbors(place)[1][:, 1]
    return np.mean(cluster[nearest] == cluster)


def test_groups_stay_together_in_the_unit_square():
    embeddings, cluster = blobs()
    place = layout.lay_out(embeddings, cluster, seed=0)
    assert place.shape == (90, 2)
    assert place.min() >= 0
    assert place.max() <= 1
    assert own_group_share(place, cluster) > 0.95


def test_a_seed_gives_the_same_map_again():
    embeddings, cluster = blobs()
    assert np.array_equal(layout.lay_out(embeddings, cluster, seed=3), layout.lay_out(embeddings, cluster, seed=3))


def test_images_outside_the_sample_lie_amid_their_neighbours(monkeypatch):
    monkeypatch.setattr(layout, "MOST_LAID_OUT", 45)
    embeddings, cluster = blobs()
    place = layout.lay_out(embeddings, cluster, seed=0)
    assert own_group_share(place, cluster) > 0.95


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_handful_of_images_has_a_map_too(count):
    embeddings, cluster = blobs(count)
    assert np.isfinite(layout.lay_out(embeddings, cluster, seed=0)).all()


def test_identical_images_have_a_map_too():
    assert np.isfinite(layout.lay_out(np.ones((30, 4), np.float32) / 2, np.zeros(30, int), seed=0)).all()


def test_progress_ends_at_the_whole():
    seen = []
    layout.lay_out(*blobs(), seed=0, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (120, 120)
