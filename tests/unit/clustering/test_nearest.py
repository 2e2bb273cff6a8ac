"""Nearest neighbours: those of a plain sort, and no more cosines at once than allowed."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from propos.clustering import nearest_in_blocks, nearest_neighbours


def directions(count, dimension=6):
    return F.normalize(torch.randn(count, dimension, generator=torch.Generator().manual_seed(0)), dim=1)


class Largest(TorchDispatchMode):
    """Notices how many values the largest tensor has that anything returns."""

    values = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        self.values = max([self.values, *(each.numel() for each in tree_leaves(made) if torch.is_tensor(each))])
        return made


@pytest.mark.parametrize("count", [1, 3, 50, 700])
def test_neighbours_of_many_are_those_of_a_plain_sort(count):
    points = directions(1_501)  # no number of groups divides it
    cosines = points.double().numpy() @ points.double().numpy().T
    np.fill_diagonal(cosines, -2)
    found = nearest_neighbours(points, count).numpy()
    assert [len(set(row)) for row in found.tolist()] == [count] * len(points)
    near = np.take_along_axis(cosines, found, axis=1)
    np.testing.assert_allclose(near, -np.sort(-cosines, axis=1)[:, :count], rtol=0, atol=1e-6)


def test_a_vector_that_is_there_many_times_has_its_likes_for_neighbours():
    points = directions(400)
    points[::4] = points[0]
    found = nearest_neighbours(points, 60)[::4]
    assert (found % 4 == 0).all()
    assert all(len({*row, mine * 4}) == 61 for mine, row in enumerate(found.tolist()))


@pytest.mark.parametrize("count", [2_000, 8_000])
def test_no_more_is_held_at_once_however_many_there_are(monkeypatch, count):
    monkeypatch.setattr("propos.clustering.neighbours.COSINES_AT_A_TIME", 4_096)
    monkeypatch.setattr("propos.clustering.neighbours.BANK_AT_A_TIME", 256)
    bank = directions(count, 2)
    with Largest() as largest:
        blocks = [places for _, places in nearest_in_blocks(bank[:40], bank, 5, first=0)]
    assert sum(len(places) for places in blocks) == 40
    assert largest.values == 4_096
