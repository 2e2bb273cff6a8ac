"""Disagreement of restarts: images between clusters change theirs, and others do not."""

import numpy as np

from propos.evaluation.restarts import RESTARTS, disagreement, restart_clusters


def circle(*degrees):
    angle = np.deg2rad(degrees)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


def test_restarts_keep_the_ids_of_clusters_that_they_find_again():
    rng = np.random.default_rng(0)
    points = circle(*np.repeat([0, 90, 180], 30) + rng.uniform(-5, 5, 90), 45)
    cluster = np.repeat([7, 2, 4], 30)
    found = restart_clusters(points, np.append(cluster, -1), seed=0)
    assert found.shape == (RESTARTS, 91)
    assert (found[:, :90] == cluster).all()
    assert np.isin(found[:, 90], (7, 2)).all()  # junk takes no part, and is assigned


def test_images_of_a_kind_that_restarts_divide_differently_disagree():
    rng = np.random.default_rng(0)
    clear, ring = rng.uniform(-2, 2, 60), rng.uniform(120, 240, 200)
    points = circle(*clear, *ring)
    cluster = np.concatenate([np.zeros(60, int), np.where(ring < 180, 1, 2)])
    apart = disagreement(restart_clusters(points, cluster, seed=0), cluster)
    assert (apart[:60] == 0).all()
    near = np.abs(ring - 180) < 5
    assert apart[60:][near].mean() > apart[60:][~near].mean() + 0.1


def test_disagreement_is_the_share_of_restarts_elsewhere():
    restarts = np.array([[0, 1], [0, 0], [1, 1], [0, 0]])
    assert disagreement(restarts, np.array([0, 1])).tolist() == [0.25, 0.5]
