"""Clusters of very unlike size: when they replace those of k-means, and how their prototypes hold them."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from propos.clustering import are_uneven, choose_clusters, hold, spherical_kmeans
from propos.clustering.choice import average_linkage, purity_of_parts
from propos.clustering.neighbour_graph import least_cohesion, neighbour_graph, spectral_embedding
from propos.clustering.separating_prototypes import evenness, separating_prototypes


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def kinds_of(*sizes, noise=0.25, seed=0):
    """Return unit vectors around one axis for each kind, and the kinds."""
    rng, kinds = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    points = np.eye(len(sizes) + 4)[kinds] + rng.normal(0, noise, (len(kinds), len(sizes) + 4))
    return F.normalize(torch.from_numpy(points).float(), dim=1), torch.from_numpy(kinds)


def a_large_kind_and_two_small_ones():
    """Return a broad kind of 240 images and two small ones: k-means loses the small."""
    rng, axes = np.random.default_rng(0), np.eye(8)
    small = axes[1] + axes[2]
    centres = np.repeat([axes[0], small + 0.5 * axes[3], small - 0.5 * axes[3]], [240, 30, 30], axis=0)
    noise = rng.normal(0, 1, (300, 8)) * np.repeat([0.35, 0.08], [240, 60])[:, None]
    return F.normalize(torch.from_numpy(centres + noise).float(), dim=1), np.repeat([0, 1, 2], [240, 30, 30])


def found_by(points, chosen, clusters):
    if chosen.held:
        return hold(points, chosen.centres)[0]
    return spherical_kmeans(points, clusters, 0, draws(), previous=chosen.centres).labels


def share_right(labels, kinds):
    """Return the share of images in the cluster that holds most of their kind, one cluster for each kind."""
    from scipy.optimize import linear_sum_assignment

    table = np.zeros((kinds.max() + 1, int(labels.max()) + 1))
    np.add.at(table, (kinds, labels.numpy()), 1)
    return table[linear_sum_assignment(-table)].sum() / len(kinds)


def test_small_kinds_beside_a_large_one_are_found_where_k_means_loses_them():
    points, kinds = a_large_kind_and_two_small_ones()
    assert share_right(spherical_kmeans(points, 3, 10, draws()).labels, kinds) < 0.9
    chosen = choose_clusters(points, 3, 7, 1, draws())
    assert share_right(found_by(points, chosen, 3), kinds) > 0.95


def test_kinds_of_like_size_are_left_to_k_means():
    points, kinds = kinds_of(60, 60, 60)
    chosen = choose_clusters(points, 3, 7, 5, draws())
    assert not chosen.held
    assert share_right(found_by(points, chosen, 3), kinds.numpy()) > 0.95


@pytest.mark.parametrize("clusters", [1, 4, 5])
def test_too_few_images_for_a_choice_are_left_to_k_means(clusters):
    points, _ = kinds_of(3, 3, noise=0.1)
    assert not choose_clusters(points, clusters, 2, 2, draws()).held


def test_evenness_by_hand():
    # Shares ½, ¼, ¼: the entropy is 1.5 ln 2, its exponential 2^1.5, of three clusters.
    assert evenness(torch.tensor([2, 1, 1])) == pytest.approx(2**1.5 / 3)
    assert evenness(torch.tensor([5, 5, 5])) == pytest.approx(1)


def test_clusters_that_a_run_held_are_held_again():
    points, kinds = a_large_kind_and_two_small_ones()
    assert are_uneven(points, separating_prototypes(points, torch.from_numpy(kinds), 3))
    assert not are_uneven(*(lambda rows: (rows, rows[[0, 60]]))(kinds_of(60, 60)[0]))


def test_the_share_of_neighbours_in_the_same_cluster_is_told():
    points, _ = kinds_of(30, 30, noise=0.02)
    assert choose_clusters(points, 2, 7, 1, draws()).together == pytest.approx(1)


def test_the_purity_of_parts_by_hand():
    # Of the first part two points of three are in one cluster, all of the second, one of two of the third.
    parts, labels = torch.tensor([0, 0, 0, 1, 1, 2, 2]), torch.tensor([0, 0, 2, 1, 1, 1, 2])
    assert purity_of_parts(labels, parts, 3) == pytest.approx((2 + 2 + 1) / 7)


def test_average_linkage_by_hand():
    angles = np.deg2rad([0, 5, 10, 60, 65, 150])
    points = torch.tensor(np.stack([np.cos(angles), np.sin(angles)], axis=1)).float()
    a, b, c = average_linkage(points, 3)[[0, 3, 5]].tolist()
    assert average_linkage(points, 3).tolist() == [a, a, a, b, b, c]
    assert len({a, b, c}) == 3


def test_a_cluster_of_two_separate_parts_has_no_cohesion():
    points, kinds = kinds_of(30, 30, 30, noise=0.05)
    graph = neighbour_graph(points, 5)
    joined = kinds.clamp(max=1)  # the last two kinds in one cluster
    assert least_cohesion(graph, joined, 2) == pytest.approx(0, abs=1e-9)
    assert least_cohesion(graph, kinds, 3) > 0.05


def test_cohesion_by_hand():
    # The complete graph of four nodes: its normalised adjacency has the eigenvalues 1 and −1/3, three times.
    graph = neighbour_graph(F.normalize(torch.eye(4) + 0.5, dim=1), 3)
    assert least_cohesion(graph, torch.zeros(4, dtype=torch.long), 1) == pytest.approx(4 / 3)


@pytest.mark.parametrize("count", [40, 200])  # all eigenvalues, and the largest ones alone
def test_the_embedding_of_separate_parts_has_one_direction_each(count):
    points, kinds = kinds_of(count // 2, count // 2, noise=0.02)
    embedded = spectral_embedding(neighbour_graph(points, 5), 2)
    cosines = (embedded @ embedded.T).numpy()
    alike = (kinds[:, None] == kinds).numpy()
    assert cosines[alike].min() > 1 - 1e-3
    assert np.abs(cosines[~alike]).max() < 1e-3


def test_prototypes_hold_clusters_that_means_lose():
    points, kinds = a_large_kind_and_two_small_ones()
    labels = torch.from_numpy(kinds)
    means = F.normalize(torch.zeros(3, 8).index_add_(0, labels, points), dim=1)
    lost = int(((points @ means.T).argmax(dim=1) != labels).sum())
    prototypes = separating_prototypes(points, labels, 3)
    kept = (points @ prototypes.T).argmax(dim=1) == labels
    assert int((~kept).sum()) < lost
    assert prototypes.norm(dim=1).numpy() == pytest.approx(np.ones(3), abs=1e-6)


def test_prototypes_of_clusters_that_means_hold_are_means_in_which_each_image_counts_the_same():
    points, labels = kinds_of(20, 20, noise=0.02)
    means = F.normalize(torch.stack([points[labels == kind].mean(dim=0) for kind in (0, 1)]), dim=1)
    assert separating_prototypes(points, labels, 2).numpy() == pytest.approx(means.numpy(), abs=1e-6)


def test_fixed_images_stay_in_their_cluster_and_its_prototype_follows_them():
    angles = np.deg2rad([0, 10, 40, 80, 90])
    points = torch.tensor(np.stack([np.cos(angles), np.sin(angles)], axis=1)).float()
    ends = points[[0, 4]]
    assert hold(points, ends)[0].tolist() == [0, 0, 0, 1, 1]
    labels, moved = hold(points, ends, torch.tensor([-1, -1, 1, -1, -1]))
    assert labels.tolist() == [0, 0, 1, 1, 1]
    assert (points @ moved.T).argmax(dim=1).tolist() == [0, 0, 1, 1, 1]
    assert math.degrees(math.atan2(*moved[1].flip(0).tolist())) < 80
