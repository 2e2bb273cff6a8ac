"""The two ways of iterating against a plain one in numpy, and where they start."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from propos.clustering.lloyd import cluster_sums, farthest_points, lloyd
from propos.clustering.points import Points, prepare
from propos.clustering.seeding import sample, seed
from propos.clustering.yinyang import yinyang


def seeded(number: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def points_of(rows: torch.Tensor, weights: torch.Tensor | None = None, chunk_size: int | None = None):
    return prepare(rows, weights, chunk_size, sharded=False)


def plain_lloyd(rows: np.ndarray, centres: np.ndarray, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    for _ in range(iterations):
        labels = (rows @ centres.T).argmax(axis=1)
        sums = np.stack([rows[labels == cluster].sum(axis=0) for cluster in range(len(centres))])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.divide(sums, lengths, out=np.full_like(sums, np.nan), where=lengths > 0)
    return labels, centres


@pytest.fixture(scope="module")
def cloud() -> torch.Tensor:
    rows = torch.randn(3000, 6, generator=seeded(), dtype=torch.float64)
    return rows / rows.norm(dim=1, keepdim=True)


@pytest.mark.parametrize("iterations", [1, 2, 5, 20, 60])
@pytest.mark.parametrize("clusters", [2, 10, 45, 100])
def test_bounds_make_the_steps_of_the_plain_iteration(cloud, clusters, iterations):
    starts = cloud[:clusters].clone()
    found = yinyang(points_of(cloud), starts, iterations, tol=0)
    labels, centres = plain_lloyd(cloud.numpy(), starts.numpy(), iterations)
    np.testing.assert_array_equal(found.labels.numpy(), labels)
    np.testing.assert_allclose(found.centres.numpy(), centres, atol=1e-9)


@given(
    spread=st.sampled_from([0.02, 0.3, 3.0]),
    dimension=st.integers(2, 20),
    clusters=st.integers(1, 12),
    iterations=st.integers(1, 12),
    seed=st.integers(0, 99),
)
def test_bounds_make_the_steps_of_the_plain_iteration_however_close_the_points(
    spread, dimension, clusters, iterations, seed
):
    """Around one direction, where all cosines are near 1, as well as all around the sphere."""
    rows = spread * torch.randn(200, dimension, generator=seeded(seed), dtype=torch.float64)
    rows[:, 0] += 1
    rows /= rows.norm(dim=1, keepdim=True)
    starts = rows[:clusters].clone()
    labels, centres = plain_lloyd(rows.numpy(), starts.numpy(), iterations)
    assume(np.isfinite(centres).all())  # without empty clusters, which the plain iteration does not fill
    found = yinyang(points_of(rows), starts, iterations, tol=0)
    np.testing.assert_array_equal(found.labels.numpy(), labels)
    np.testing.assert_allclose(found.centres.numpy(), centres, atol=1e-9)


@pytest.mark.parametrize("clusters", [10, 45])
def test_restarts_together_make_the_steps_of_each_alone(cloud, clusters):
    starts = cloud[: 3 * clusters].view(3, clusters, 6)
    found = lloyd(points_of(cloud, chunk_size=500), starts, 12, tol=0)
    for restart in range(3):
        labels, centres = plain_lloyd(cloud.numpy(), starts[restart].numpy(), 12)
        np.testing.assert_allclose(found.centres[restart].numpy(), centres, atol=1e-9)
        own = (cloud.numpy() * centres[labels]).sum(axis=1)
        assert float(found.inertia[restart]) == pytest.approx((1 - own).sum(), rel=1e-9)


def test_asking_the_device_less_often_ends_at_the_same_fixed_points(cloud):
    starts = cloud[:40].view(5, 8, 6)
    often, seldom = (lloyd(points_of(cloud), starts, 300, tol=0, check_every=every) for every in (1, 8))
    torch.testing.assert_close(often.centres, seldom.centres, atol=1e-9, rtol=0)
    torch.testing.assert_close(often.inertia, seldom.inertia, atol=1e-6, rtol=0)
    assert (seldom.iterations % 8 == 0).all()


def test_a_tolerance_bounds_how_much_nearer_another_centre_may_be(cloud):
    for tol in (0.1, 0.01, 0.001):
        found = yinyang(points_of(cloud), cloud[:20].clone(), 300, tol)
        cosines = cloud @ found.centres.T
        own = cosines.gather(1, found.labels[:, None])[:, 0]
        assert float((cosines.amax(dim=1) - own).max()) <= tol
    assert found.iterations > yinyang(points_of(cloud), cloud[:20].clone(), 300, 0.1).iterations


def test_sums_and_sizes_are_those_of_the_nearest_centres(cloud):
    weights = torch.rand(3000, generator=seeded(), dtype=torch.float64)
    for clusters in (5, 50):
        centres = cloud[: 2 * clusters].view(2, clusters, 6)
        sums, sizes = cluster_sums(points_of(cloud, weights, 700), centres)
        for restart in range(2):
            labels = (cloud @ centres[restart].T).argmax(dim=1)
            expected = torch.zeros(clusters, 6, dtype=torch.float64).index_add_(0, labels, cloud * weights[:, None])
            torch.testing.assert_close(sums[restart], expected)
            assert sizes[restart].tolist() == torch.bincount(labels, minlength=clusters).tolist()


def test_the_worst_served_are_the_farthest_and_never_zero_or_weightless():
    rows = torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [-1.0, 0.0]])
    weights = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0])
    worst = farthest_points(points_of(rows, weights), torch.tensor([[1.0, 0.0]]), 4)
    torch.testing.assert_close(worst, torch.tensor([[0.0, 1.0], [0.5**0.5, 0.5**0.5]]))


def test_starts_are_spread_over_groups_far_apart():
    groups = torch.eye(6)[torch.arange(600) % 6] + 0.01 * torch.randn(600, 6, generator=seeded())
    starts = seed(points_of(groups), 6, 20, seeded())
    assert all(set(start.argmax(dim=1).tolist()) == set(range(6)) for start in starts)


def test_random_starts_are_any_points_and_differ_between_restarts():
    rows = torch.eye(50)
    starts = seed(points_of(rows), 10, 30, seeded(), "random").argmax(dim=2)
    assert len({tuple(start.tolist()) for start in starts}) == 30
    assert len(set(starts.flatten().tolist())) > 45


@pytest.mark.parametrize("seeding", ["k-means++", "random"])
def test_starts_are_points_that_count(seeding):
    rows = torch.eye(8)
    weights = torch.tensor([1.0, 0.0, 2.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    rows[6] = 0  # a zero vector
    starts = seed(points_of(rows, weights), 3, 50, seeded(), seeding)
    assert set(starts.argmax(dim=2).flatten().tolist()) == {0, 2, 4}
    torch.testing.assert_close(starts.norm(dim=2), torch.ones(50, 3))


def test_a_heavier_point_is_drawn_as_often_as_its_weight_says():
    starts = seed(points_of(torch.eye(2), torch.tensor([3.0, 1.0])), 1, 4000, seeded())
    # 3 of 4, give or take four standard deviations of √(4000 · ¾ · ¼) = 27.
    assert abs(int((starts[:, 0, 0] == 1).sum()) - 3000) < 110


def test_a_sample_takes_one_point_of_every_stretch():
    rows = torch.stack([torch.arange(1.0, 1001.0), torch.ones(1000)], dim=1)
    drawn = sample(points_of(rows), 100, seeded())
    places = (drawn.data[:, 0] / drawn.data[:, 1]).round().long() - 1
    assert (places // 10).tolist() == list(range(100))
    assert len(set((places % 10).tolist())) > 5


def test_small_data_are_read_at_unit_length_and_large_numbers_too():
    rows = torch.tensor([[3.0, 4.0], [3e30, 4e30], [3e-30, 4e-30], [0.0, 0.0]])
    held = points_of(rows)
    torch.testing.assert_close(held.rows(slice(0, 4)), torch.tensor([[0.6, 0.8]] * 3 + [[0.0, 0.0]]))


@pytest.mark.parametrize("clusters", [10, 100])
def test_an_iteration_asks_the_device_for_no_number(clusters):
    """The meta device has shapes and no numbers: whatever waits for one fails there."""
    rows = torch.empty((20_000, 8), device="meta")
    points = Points(rows, None, None, None, rows.dtype, None, False, 0, len(rows), len(rows), len(rows))
    sums, sizes = cluster_sums(points, torch.empty((3, clusters, 8), device="meta"))
    assert sums.shape == (3, clusters, 8)
    assert sizes.shape == (3, clusters)
