"""k-means on a stand-in GPU: the CPU's clusters, one wait in eight iterations, chunks that follow the card's memory."""

import math

import pytest
import torch
import torch.nn.functional as F

from helpers.gpu import GPU, MEMORY, standing_in
from propos.clustering import nearest_neighbours, spherical_kmeans
from propos.clustering.lloyd import CHECK_EVERY, lloyd
from propos.clustering.points import GPU_PART, prepare
from propos.clustering.seeding import seed

AROUND_THE_ITERATIONS = 24  # waits when the data are checked, the sample is drawn, and the result is read


@pytest.fixture
def gpu():
    with standing_in() as gpu:
        yield gpu


def draw():
    return torch.Generator().manual_seed(0)


def groups(count, clusters, dimension=8):
    """Return points around as many directions as there are clusters, far apart."""
    generator = draw()
    centres = F.normalize(torch.randn((clusters, dimension), generator=generator), dim=1)
    near = centres[torch.arange(count) % clusters]
    return F.normalize(near + 0.1 * torch.randn((count, dimension), generator=generator), dim=1)


@pytest.mark.parametrize(("count", "clusters"), [(600, 5), (6_000, 5), (6_000, 40)])
def test_clusters_are_the_cpus(gpu, count, clusters):
    points = groups(count, clusters, dimension=16)
    there = spherical_kmeans(points, clusters, 3, draw())
    here = spherical_kmeans(points.to(GPU), clusters, 3, draw())
    assert here.inertia == pytest.approx(there.inertia, rel=1e-5)
    assert here.labels.cpu().unique().tolist() == list(range(clusters))
    torch.testing.assert_close(here.centres.cpu(), there.centres, atol=1e-4, rtol=0)


def test_the_host_waits_once_in_eight_iterations(gpu):
    points = prepare(torch.randn((3_000, 8), generator=draw()).to(GPU), None, None, False)
    starts = seed(points, 12, 3, draw())
    gpu.waits.clear()
    ended = lloyd(points, starts, 300, 1e-4)
    most = int(ended.iterations.max())
    assert most > 2 * CHECK_EVERY
    assert len(gpu.waits) == math.ceil(most / CHECK_EVERY)


def test_seeding_never_waits(gpu):
    points = prepare(groups(500, 5).to(GPU), None, None, False)
    gpu.waits.clear()
    seed(points, 20, 2, draw())
    assert gpu.waits == []


@pytest.mark.parametrize("clusters", [4, 40])
def test_all_other_waits_do_not_depend_on_the_clusters(gpu, clusters):
    points = groups(8_000, clusters).to(GPU)
    gpu.waits.clear()
    found = spherical_kmeans(points, clusters, 2, draw(), scout_size=1_000)
    other = [wait for wait in gpu.waits if "lloyd.py:lloyd" not in wait]
    assert len(other) <= AROUND_THE_ITERATIONS, other
    assert found.repeated == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_seeds_repeat_where_that_was_asked_for(gpu, weighted):
    """A GPU's cumulative sums of floats do not repeat, and torch refuses them."""
    weights = torch.arange(1.0, 501.0) if weighted else None
    points = groups(500, 5)
    there = seed(prepare(points, weights, None, False), 20, 2, draw())
    torch.use_deterministic_algorithms(True)
    try:
        here = seed(prepare(points.to(GPU), weights, None, False), 20, 2, draw())
    finally:
        torch.use_deterministic_algorithms(False)
    torch.testing.assert_close(here.cpu(), there)


def test_points_that_are_all_centres_already_are_drawn_again(gpu):
    points = prepare(torch.eye(3).to(GPU), None, None, False)
    starts = seed(points, 5, 2, draw()).cpu()
    assert starts.norm(dim=2).eq(1).all()


def test_chunks_take_a_part_of_the_cards_memory_not_of_a_cache(gpu):
    rows, columns = MEMORY // (GPU_PART * 4 * 64), 60
    points = prepare(torch.zeros((3 * rows, 4)).add_(1).to(GPU), None, None, False)
    assert [span.stop - span.start for span in points.spans(columns)] == [rows] * 3
    assert len(list(points.product_spans(600))) == math.ceil(3 * rows / (MEMORY // (GPU_PART * 4 * 1204)))


def test_neighbours_are_the_cpus(gpu):
    points = groups(700, 5)
    assert torch.equal(nearest_neighbours(points.to(GPU), 6).cpu(), nearest_neighbours(points, 6))
