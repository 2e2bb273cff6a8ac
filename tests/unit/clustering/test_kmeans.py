import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from propos.clustering import Clustering, assign, spherical_kmeans
from propos.common.errors import InputError


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(points: int, clusters: int, dimension: int = 8, spread: float = 0.3, seed: int = 0) -> torch.Tensor:
    generator = seeded(seed)
    centres = torch.randn(clusters, dimension, generator=generator)
    noise = torch.randn(points, dimension, generator=generator)
    return centres[torch.arange(points) % clusters] + spread * noise


def directions(points: torch.Tensor) -> np.ndarray:
    rows = points.double().numpy()
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def assert_fixed_point(points: torch.Tensor, found: Clustering, tol: float = 1e-4, weights=None) -> None:
    """No point has a nearer centre, each centre is its points' normalised sum, the inertia is theirs: in numpy."""
    rows, labels, centres = directions(points), found.labels.numpy(), found.centres.double().numpy()
    weights = np.ones(len(rows)) if weights is None else weights.double().numpy()
    cosines = rows @ centres.T
    own = cosines[np.arange(len(rows)), labels]
    assert (cosines.max(axis=1) - own).max() <= tol + 1e-5
    for cluster in range(len(centres)):
        total = (rows[labels == cluster] * weights[labels == cluster, None]).sum(axis=0)
        if np.linalg.norm(total) > 1e-9:
            np.testing.assert_allclose(centres[cluster], total / np.linalg.norm(total), atol=1e-5)
    assert found.inertia == pytest.approx((weights * (1 - own)).sum(), rel=1e-4, abs=1e-5 * weights.sum())
    assert np.bincount(labels, minlength=len(centres)).min() > 0


@pytest.mark.parametrize("scout_size", ["auto", None, 500])
@pytest.mark.parametrize("clusters", [1, 7, 40])
def test_the_result_is_a_fixed_point_on_all_points(clusters, scout_size):
    points = blobs(6000, 12, spread=0.8)
    found = spherical_kmeans(points, clusters, 3, seeded(), scout_size=scout_size, tol=0)
    assert_fixed_point(points, found, tol=0)


def test_two_pairs_of_directions_by_hand():
    # Directions 0° 20° | 90° 110° of any length: centres bisect at 10° and 100°; inertia 4·(1 − cos 10°).
    angles = torch.deg2rad(torch.tensor([0.0, 20.0, 90.0, 110.0]))
    points = torch.stack([angles.cos(), angles.sin()], dim=1) * torch.tensor([[3.0], [0.5], [1.0], [7.0]])
    found = spherical_kmeans(points, 2, 3, seeded())
    assert found.labels[0] == found.labels[1] != found.labels[2] == found.labels[3]
    bisectors = torch.deg2rad(torch.tensor([10.0, 100.0]))[found.labels[[0, 2]].argsort()]
    torch.testing.assert_close(found.centres, torch.stack([bisectors.cos(), bisectors.sin()], dim=1))
    assert found.inertia == pytest.approx(4 * (1 - np.cos(np.deg2rad(10))), abs=1e-6)


def test_well_separated_groups_are_found_again():
    points = blobs(5000, 10, dimension=32, spread=0.1)
    labels = spherical_kmeans(points, 10, 10, seeded()).labels
    assert len({(int(a), int(b)) for a, b in zip(labels, torch.arange(5000) % 10, strict=True)}) == 10


@pytest.mark.parametrize("size", [400, 9000])
def test_the_same_seed_gives_the_same_bits(size):
    points = blobs(size, 6, spread=1.0)
    first, second = (spherical_kmeans(points, 6, 4, seeded(3)) for _ in range(2))
    assert torch.equal(first.labels, second.labels)
    assert torch.equal(first.centres, second.centres)
    assert first.inertia == second.inertia


@pytest.mark.parametrize("scout_size", ["auto", None])
@pytest.mark.parametrize("clusters", [5, 40])
def test_the_chunk_size_changes_nothing(clusters, scout_size):
    points = blobs(6000, 5, spread=0.4)
    whole, chunked = (
        spherical_kmeans(points, clusters, 2, seeded(), chunk_size=size, scout_size=scout_size) for size in (None, 700)
    )
    assert (whole.labels == chunked.labels).float().mean() > 0.999
    assert whole.inertia == pytest.approx(chunked.inertia, rel=1e-6)


@pytest.mark.parametrize("clusters", [10, 60])
def test_the_number_of_threads_changes_no_bit(clusters):
    """Else a run's prototypes would depend on the machine."""
    points, before = blobs(5000, 12, dimension=256, spread=0.8), torch.get_num_threads()

    def found(threads):
        torch.set_num_threads(threads)
        return spherical_kmeans(points, clusters, 3, seeded())

    try:
        one, two, three = (found(threads) for threads in (1, 2, 3))
    finally:
        torch.set_num_threads(before)
    for other in (two, three):
        assert torch.equal(other.centres, one.centres)
        assert torch.equal(other.labels, one.labels)
        assert other.inertia == one.inertia


def test_the_lengths_of_points_play_no_part():
    points = blobs(1000, 4)
    scales = torch.logspace(-30, 30, 1000)[torch.randperm(1000, generator=seeded())]
    short = spherical_kmeans(points, 4, 3, seeded())
    scaled = spherical_kmeans(points * scales[:, None], 4, 3, seeded())
    assert torch.equal(short.labels, scaled.labels)


def test_a_weight_counts_like_so_many_points():
    points, weights = blobs(600, 4, spread=0.7), torch.arange(600) % 3 + 1.0
    starts = points[:4]
    weighted = spherical_kmeans(points, 4, 0, seeded(), weights=weights, previous=starts, tol=0)
    repeated = spherical_kmeans(points.repeat_interleave(weights.long(), dim=0), 4, 0, seeded(), previous=starts, tol=0)
    torch.testing.assert_close(weighted.centres, repeated.centres)
    assert weighted.inertia == pytest.approx(repeated.inertia, rel=1e-5)
    assert_fixed_point(points, weighted, tol=0, weights=weights)


def test_points_of_no_weight_are_labelled_but_move_no_centre():
    points = blobs(300, 3, spread=0.2)
    strangers = torch.randn(50, 8, generator=seeded(9))
    weights = torch.cat([torch.ones(300), torch.zeros(50)])
    found = spherical_kmeans(torch.cat([points, strangers]), 3, 5, seeded(), weights=weights)
    alone = spherical_kmeans(points, 3, 5, seeded())
    assert found.inertia == pytest.approx(alone.inertia, rel=1e-5)
    assert torch.equal(found.labels, assign(torch.cat([points, strangers]), found.centres)[0])


@pytest.mark.parametrize("size", [1500, 9000])
def test_good_previous_centres_are_not_lost(size):
    points = blobs(size, 30, dimension=16, spread=0.25)
    good = spherical_kmeans(points, 30, 5, seeded(1), scout_size=None)
    found = spherical_kmeans(points, 30, 1, seeded(2), previous=good.centres)
    assert found.inertia <= good.inertia * (1 + 1e-6)


def test_double_precision_is_kept():
    points = blobs(500, 3).double()
    found = spherical_kmeans(points, 3, 2, seeded(), tol=0)
    assert found.centres.dtype == torch.float64
    total = directions(points)[found.labels.numpy() == 0].sum(axis=0)
    np.testing.assert_allclose(found.centres[0].numpy(), total / np.linalg.norm(total), atol=1e-12)


def test_whole_numbers_are_clustered_as_they_are():
    points = (blobs(200, 2, spread=0.1) * 100).to(torch.int16)
    found = spherical_kmeans(points, 2, 3, seeded())
    assert_fixed_point(points.float(), found)


def test_the_points_are_left_as_they_were():
    points = blobs(500, 3)
    before = points.clone()
    spherical_kmeans(points, 3, 2, seeded())
    assert torch.equal(points, before)


def test_sums_of_a_million_points_are_accurate():
    # One cluster of 2^20 points: their sum must not lose the small component that single precision would.
    generator = seeded()
    points = torch.randn(2**20, 2, generator=generator) * 1e-3 + torch.tensor([1.0, 0.01])
    found = spherical_kmeans(points, 1, 1, seeded())
    total = directions(points).sum(axis=0)
    np.testing.assert_allclose(found.centres[0].double().numpy(), total / np.linalg.norm(total), atol=1e-7)


@given(
    points=st.integers(1, 40),
    clusters=st.integers(1, 12),
    distinct=st.integers(1, 12),
    zeros=st.integers(0, 3),
    seed=st.integers(0, 5),
)
def test_any_small_problem_ends_in_a_fixed_point_with_no_cluster_empty(points, clusters, distinct, zeros, seed):
    some = torch.randn(distinct, 3, generator=seeded(seed))
    rows = torch.cat([some[torch.arange(points) % distinct], torch.zeros(zeros, 3)])
    clusters = min(clusters, len(rows))
    assert_fixed_point(rows, spherical_kmeans(rows, clusters, 2, seeded(seed)))


def test_as_many_clusters_as_points_gives_each_its_own():
    points = torch.randn(20, 5, generator=seeded())
    found = spherical_kmeans(points, 20, 2, seeded())
    assert sorted(found.labels.tolist()) == list(range(20))
    assert found.inertia == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("size", [50, 9000])
def test_identical_points_are_shared_out_and_said_to_repeat(size):
    found = spherical_kmeans(torch.ones(size, 4), 3, 2, seeded())
    assert found.repeated == 2
    assert np.bincount(found.labels.numpy(), minlength=3).min() >= 1
    torch.testing.assert_close(found.centres, torch.full((3, 4), 0.5))


def test_opposite_points_that_cancel_out_give_no_nan():
    points = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    found = spherical_kmeans(points, 1, 1, seeded())
    assert torch.isfinite(found.centres).all()
    assert found.inertia == pytest.approx(2)


def test_zero_vectors_take_a_label_but_no_part():
    points = torch.cat([blobs(300, 3, spread=0.1), torch.zeros(40, 8)])
    found = spherical_kmeans(points, 3, 4, seeded())
    alone = spherical_kmeans(points[:300], 3, 4, seeded())
    assert found.inertia == pytest.approx(alone.inertia + 40, rel=1e-5)
    assert ((found.labels >= 0) & (found.labels < 3)).all()


def test_an_empty_cluster_takes_the_worst_served_point():
    # Both starts sit on the left group, so that the second is empty; the lone far point must become its centre.
    points = torch.tensor([[1.0, 0.0], [1.0, 0.1], [1.0, -0.1], [-1.0, 0.2]])
    starts = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    found = spherical_kmeans(points, 2, 0, seeded(), previous=starts)
    assert found.labels.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("points", "options", "words"),
    [
        (torch.tensor([[1.0, 2.0], [torch.nan, 1.0]]), {}, "row 1 holds NaN"),
        (torch.tensor([[1.0, 2.0], [torch.inf, 1.0]]), {}, "row 1 holds NaN or infinity"),
        (torch.ones(2, 2), {"clusters": 3}, "3 clusters of 2 points: choose from 1 to 2"),
        (torch.ones(2, 2), {"clusters": 0}, "0 clusters of 2 points"),
        (torch.ones(2), {}, "give a table"),
        (torch.ones(0, 2), {}, "of 0 points"),
        (torch.zeros(5, 2), {}, "is a zero vector, which has no direction"),
        (torch.ones(5, 2), {"restarts": 0}, "0 restarts: choose 1 or more"),
        (torch.ones(5, 2), {"weights": torch.ones(4)}, "give one per point"),
        (torch.ones(5, 2), {"weights": -torch.ones(5)}, "weight is negative"),
        (torch.ones(5, 2), {"weights": torch.zeros(5)}, "every weight is zero"),
        (torch.ones(5, 2), {"chunk_size": 0}, "chunk_size is 0"),
        (torch.ones(5, 2), {"scout_size": 0}, "scout_size is 0"),
        (torch.ones(5, 2), {"scout_size": "some"}, "scout_size is 'some'"),
        (torch.ones(5, 2), {"max_iter": 0}, "max_iter is 0"),
        (torch.ones(5, 2), {"tol": -1.0}, "tol -1.0"),
        (torch.ones(5, 2), {"previous": torch.ones(2, 3)}, "it must be (1, 2)"),
        (torch.ones(5, 2), {"previous": torch.full((1, 2), torch.nan)}, "previous centres hold NaN"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(points, options, words):
    options = {"clusters": 1, "restarts": 1, **options}
    with pytest.raises(InputError, match=r"^k-means: ") as refused:
        spherical_kmeans(points, options.pop("clusters"), options.pop("restarts"), seeded(), **options)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
