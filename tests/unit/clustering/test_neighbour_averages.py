import numpy as np
import pytest
import torch

from propos.clustering import nearest_neighbours, spherical_kmeans, start_from_averages
from propos.clustering.neighbour_averages import averaged, neighbour_purity


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_point_is_averaged_with_its_nearest_neighbours():
    angles = np.deg2rad([0, 10, 30, 90])
    points = torch.tensor(np.stack([np.cos(angles), np.sin(angles)], axis=1)).float()
    made = averaged(points, 1)
    # The nearest of 0° and 30° is 10°, of 10° it is 0°, of 90° it is 30°; two unit vectors average to half way.
    found = np.rad2deg(np.arctan2(*made.numpy().T[::-1]))
    assert found == pytest.approx([5, 5, 20, 60], abs=1e-3)
    assert made.norm(dim=1).numpy() == pytest.approx(np.ones(4), abs=1e-6)


def test_a_start_has_the_means_of_the_points_themselves():
    rng = np.random.default_rng(0)
    axes = np.eye(6)[:3]
    points = np.repeat(axes, 20, axis=0) + rng.normal(0, 0.05, (60, 6))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    start = start_from_averages(torch.from_numpy(points).float(), 3, 4, 5, draws()).numpy()
    means = points.reshape(3, 20, 6).sum(axis=1)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    order = (start @ means.T).argmax(axis=1)
    assert sorted(order) == [0, 1, 2]
    assert start == pytest.approx(means[order], abs=1e-5)


def test_points_that_average_to_the_same_still_give_every_cluster_a_start():
    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(3, 8)).repeat(8, axis=0) + rng.normal(0, 1e-3, (24, 8))
    points = torch.from_numpy(kinds).float()  # eight alike, each averaged with the seven others
    start = start_from_averages(points, 6, 7, 5, draws())
    found = spherical_kmeans(points, 6, 0, draws(), previous=start)
    assert len(set(found.labels.tolist())) == 6


def test_of_many_points_a_sample_says_where_clusters_begin():
    rng = np.random.default_rng(0)
    points = np.repeat(np.eye(4), 2500, axis=0) + rng.normal(0, 0.1, (10_000, 4))
    start = start_from_averages(torch.from_numpy(points).float(), 4, 4, 3, draws())
    assert sorted(start.argmax(dim=1).tolist()) == [0, 1, 2, 3]
    assert start.max(dim=1).values.min() > 0.99


def test_every_cluster_counts_the_same_in_how_much_neighbours_are_together():
    labels = torch.tensor([0, 0, 0, 1])
    near = torch.tensor([[1, 2], [0, 3], [3, 0], [0, 1]])
    # In the first cluster all, half and half of two neighbours; in the second none: (2/3 + 0) / 2.
    assert neighbour_purity(labels, near, 2) == pytest.approx(1 / 3)


def test_clusters_that_are_kinds_of_uneven_size_are_more_together_than_those_that_k_means_likes_best():
    rng = np.random.default_rng(0)
    axes = np.eye(8)
    small = axes[1] + axes[2]
    centres = np.repeat([axes[0], small + 0.5 * axes[3], small - 0.5 * axes[3]], [240, 30, 30], axis=0)
    noise = rng.normal(0, 1, (300, 8)) * np.repeat([0.35, 0.08], [240, 60])[:, None]
    points = torch.nn.functional.normalize(torch.from_numpy(centres + noise).float(), dim=1)
    kinds = torch.from_numpy(np.repeat([0, 1, 2], [240, 30, 30]))
    likes = spherical_kmeans(points, 3, 10, draws())
    means = torch.nn.functional.normalize(torch.stack([points[kinds == kind].sum(dim=0) for kind in range(3)]), dim=1)
    assert likes.inertia < float((1 - (points * means[kinds]).sum(dim=1)).sum())  # it cuts the large one in two
    near = nearest_neighbours(points, 20)
    assert neighbour_purity(kinds, near, 3) > neighbour_purity(likes.labels, near, 3) + 0.05
