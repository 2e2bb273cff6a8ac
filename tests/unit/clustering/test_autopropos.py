"""AutoProPos's choice of the number of clusters: its divergence by loops and scipy, its choices by hand."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import entropy

from propos.clustering import SUGGEST
from propos.clustering.autopropos import Chosen, average, choose, compressed, divergence


def groups(count, each, seed=0):
    """Return unit vectors around directions at right angles."""
    draw = torch.Generator().manual_seed(seed)
    centres = torch.eye(16)[:count].repeat_interleave(each, 0)
    return F.normalize(centres + 0.05 * torch.randn(count * each, 16, generator=draw), dim=1)


def test_the_divergence_equals_scipys_entropies():
    scores, labels = np.array([0.9, 0.1, 0.5, -0.2, 0.4, 0.7]), np.array([2, 0, 2, 0, 0, 5])
    rows = []
    for number in (0, 2, 5):
        own = np.sort(scores[labels == number] + 0.2)[::-1]
        rows.append(np.pad(own, (0, 3 - len(own))) / own.sum())
    shares = np.array([3, 2, 1]) / 6
    expected = entropy(shares @ np.array(rows)) - shares @ [entropy(row) for row in rows]
    assert float(divergence(torch.tensor(scores), torch.tensor(labels).long())) == pytest.approx(expected, abs=1e-6)


def test_clusters_whose_silhouettes_are_alike_do_not_diverge():
    scores, labels = torch.tensor([0.3, 0.8] * 4), torch.arange(8) // 2
    assert float(divergence(scores, labels)) == pytest.approx(0.0, abs=1e-6)


def test_a_networks_number_is_the_most_even_of_the_four_with_the_highest_silhouettes():
    silhouettes = [0.1, 0.5, 0.6, 0.4, 0.55, 0.2]
    divergences = [0.0, 0.3, 0.4, 0.2, 0.5, 0.1]
    assert choose((2, 3, 4, 5, 6, 7), silhouettes, divergences) == Chosen(5, 0.2)


def test_the_numbers_of_the_five_most_even_networks_are_averaged():
    by_network = [Chosen(30, 0.9), *(Chosen(number, 0.1) for number in (8, 9, 10, 10, 12)), Chosen(2, 0.8)]
    assert average(by_network) == 10  # of 9.8


def test_groups_are_counted():
    found = SUGGEST["autopropos"](groups(6, 40), 2, 12, torch.Generator().manual_seed(0))
    assert found.chosen == 6
    assert found.tried == tuple(range(2, 13))
    assert list(found.plain()["scores"]) == ["silhouette", "divergence"]
    assert "6 clusters suggested, of 2 to 12" in found.why


def test_compressed_points_keep_their_groups():
    points = groups(4, 30)
    outputs = compressed(points, torch.Generator().manual_seed(1), lambda: None)
    assert outputs.shape == (10, 120, 4)
    cosines = outputs @ outputs.mT
    same = torch.arange(120)[:, None] // 30 == torch.arange(120) // 30
    assert (cosines[:, same].mean() - cosines[:, ~same].mean()) > 0.5
