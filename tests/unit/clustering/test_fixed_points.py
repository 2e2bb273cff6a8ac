"""K-means in which some points have to stay where they are."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from propos.clustering import spherical_kmeans
from propos.clustering.lloyd import lloyd
from propos.clustering.points import prepare
from propos.common.errors import InputError


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def blobs(points, clusters, dimension=8, spread=0.8):
    centres = torch.randn(clusters, dimension, generator=seeded(1))
    return centres[torch.arange(points) % clusters] + spread * torch.randn(points, dimension, generator=seeded(2))


def by_angle(*degrees):
    angles = torch.deg2rad(torch.tensor(degrees))
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def oracle(points, centres, fixed, iterations=200):
    """Constrained k-means in plain numpy."""
    rows = points.double().numpy()
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    centres = centres.double().numpy()
    for _ in range(iterations):
        labels = np.where(fixed >= 0, fixed, (rows @ centres.T).argmax(axis=1))
        sums = np.stack([rows[labels == number].sum(axis=0) for number in range(len(centres))])
        centres = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return labels, centres


def test_a_fixed_point_stays_far_from_its_centre_and_counts_in_it():
    # 0° 10° 20° are one cluster, 90° 100° the other; 20° is fixed in the other, whose mean it draws towards itself.
    points = by_angle(0.0, 10.0, 20.0, 90.0, 100.0)
    fixed = torch.tensor([-1, -1, 1, -1, -1])
    found = spherical_kmeans(points, 2, 0, seeded(), previous=by_angle(10.0, 95.0), fixed=fixed)
    assert found.labels.tolist() == [0, 0, 1, 1, 1]
    mean = F.normalize(points[2:].double().sum(dim=0), dim=0)
    torch.testing.assert_close(found.centres[1].double(), mean, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.centres[0], by_angle(5.0)[0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("clusters", [6, 40])
def test_the_result_is_that_of_the_plain_iteration(clusters):
    points = blobs(3000, clusters)
    start = F.normalize(points[:clusters], dim=1)
    fixed = torch.where(torch.rand(3000, generator=seeded()) < 0.3, torch.arange(3000) % 7 % clusters, -1)
    found = spherical_kmeans(points, clusters, 0, seeded(), previous=start, fixed=fixed, tol=0)
    labels, centres = oracle(points, start, fixed.numpy())
    assert (found.labels.numpy() == labels).mean() > 0.999
    np.testing.assert_allclose(found.centres.numpy(), centres, atol=1e-3)
    assert (found.labels[fixed >= 0] == fixed[fixed >= 0]).all()
    whole = lloyd(prepare(points, None, None, False, fixed), start[None], 300, 0.0)  # as an accelerator does it
    torch.testing.assert_close(whole.centres[0], found.centres, atol=1e-3, rtol=0)


def test_with_nothing_fixed_it_is_k_means_from_where_it_stood():
    points = blobs(500, 5)
    start = F.normalize(points[:5], dim=1)
    plain = spherical_kmeans(points, 5, 0, seeded(), previous=start)
    free = spherical_kmeans(points, 5, 0, seeded(), previous=start, fixed=torch.full((500,), -1))
    assert torch.equal(plain.labels, free.labels)
    assert torch.equal(plain.centres, free.centres)


def test_an_empty_cluster_takes_a_free_point_and_never_a_fixed_one():
    points = by_angle(0.0, 1.0, 2.0, 3.0, 80.0)
    fixed = torch.tensor([-1, -1, -1, -1, 0])  # the farthest of all has to stay
    start = by_angle(1.0, 1.0)  # all go to the first of two equal centres
    found = spherical_kmeans(points, 2, 0, seeded(), previous=start, fixed=fixed)
    assert found.labels[4] == 0
    assert torch.bincount(found.labels, minlength=2).min() > 0


def test_where_every_point_is_fixed_a_cluster_may_stay_empty_with_its_centre():
    fixed = torch.tensor([0, 0, 0])
    found = spherical_kmeans(by_angle(0.0, 10.0, 20.0), 2, 0, seeded(), previous=by_angle(0.0, 90.0), fixed=fixed)
    assert found.labels.tolist() == [0, 0, 0]
    torch.testing.assert_close(found.centres, by_angle(10.0, 90.0), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("restarts", "fixed", "words"),
    [
        (1, torch.zeros(4, dtype=torch.int64), "1 restarts of fixed points"),
        (0, torch.zeros(3, dtype=torch.int64), "fixed of shape"),
        (0, torch.full((4,), 2), "numbers other than those of the 2 clusters"),
    ],
)
def test_what_cannot_be_is_refused(restarts, fixed, words):
    with pytest.raises(InputError, match=words):
        spherical_kmeans(torch.eye(4), 2, restarts, seeded(), previous=torch.eye(4)[:2], fixed=fixed)
