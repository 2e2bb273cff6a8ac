"""Neighbours by an inverted file: nearly all of the true ones, found in a few cells, and never a point itself."""

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

from helpers.allocations import Allocations
from propos.clustering import inverted_file, nearest_neighbours
from propos.clustering.inverted_file import InvertedFile, approximate_neighbours
from propos.clustering.neighbours import exact_neighbours


def digits(times):
    """Return the digits as unit vectors, each a few times with some noise."""
    pixels = torch.from_numpy(load_digits().images.reshape(-1, 64)).float()
    noise = torch.randn((times, *pixels.shape), generator=torch.Generator().manual_seed(0))
    return F.normalize((pixels + 2 * noise).flatten(0, 1), dim=1)


def recall(found, true):
    return float((found[:, :, None] == true[:, None]).any(dim=2).double().mean())


def test_nearly_all_true_neighbours_are_found():
    points = digits(10)
    rows = slice(4000, 4600)
    found = approximate_neighbours(points, 20, rows)
    assert all(len({*row, own}) == 21 for own, row in enumerate(found.tolist(), start=rows.start))
    assert recall(found, exact_neighbours(points, 20, rows)) > 0.97
    cosines = (points[found] * points[rows][:, None]).sum(dim=2)
    assert (cosines.diff(dim=1) <= 1e-6).all()  # nearest first


def test_few_points_are_compared_with_all_and_many_by_cells(monkeypatch):
    points = digits(2)
    exact = exact_neighbours(points, 5, slice(0, len(points)))
    assert torch.equal(nearest_neighbours(points, 5), exact)
    monkeypatch.setattr(inverted_file, "EXACT_UP_TO", 1000)
    monkeypatch.setattr(inverted_file, "PROBES", 2)
    found = nearest_neighbours(points, 5, slice(0, 700))
    assert found.shape == (700, 5)
    assert 0.3 < recall(found, exact[:700]) < 0.97


def test_the_same_points_have_the_same_neighbours_in_parts():
    points = digits(2)
    whole = approximate_neighbours(points, 7, slice(0, 3000))
    parts = [approximate_neighbours(points, 7, slice(*part)) for part in ((0, 1234), (1234, 3000))]
    assert torch.equal(torch.cat(parts), whole)


def test_points_of_small_cells_are_compared_with_all(monkeypatch):
    monkeypatch.setattr(inverted_file, "PROBES", 1)
    points = digits(1)[:300]
    points[::3] = points[0]  # many of one kind
    found = approximate_neighbours(points, 150, slice(0, 300))
    assert all(len({*row, own}) == 151 for own, row in enumerate(found.tolist()))
    assert (found >= 0).all()


@pytest.mark.parametrize("times", [1, 3])
def test_memory_does_not_grow_with_points_times_points(monkeypatch, times):
    monkeypatch.setattr(inverted_file, "COSINES", 2**14)
    monkeypatch.setattr(inverted_file, "QUERIES", 500)
    points = digits(times)
    filed = InvertedFile.of(points)
    with Allocations() as made:
        filed.nearest(torch.arange(500), 10)
    assert max(made.values) <= max(500 * 64, 2**14 + 500)
