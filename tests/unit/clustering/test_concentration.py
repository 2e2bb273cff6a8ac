import numpy as np
import pytest
import torch

from propos.clustering import concentrations


def test_concentrations_by_the_formula():
    rng = np.random.default_rng(0)
    points, centres = rng.normal(size=(60, 4)), rng.normal(size=(8, 4))
    labels = np.concatenate([np.arange(7), rng.integers(6, size=53)])  # cluster 6 has one point, cluster 7 none
    sizes = [int((labels == k).sum()) for k in range(8)]
    values = []
    for k in range(6):
        distances = [np.linalg.norm(p - centres[k]) for p, label in zip(points, labels, strict=True) if label == k]
        values.append(np.mean(distances) / np.log(len(distances) + 10))
    values += [max(values)] * 2
    values = np.clip(values, np.percentile(values, 10), np.percentile(values, 90))
    expected = 0.7 * values / values.mean()
    assert sizes[6:] == [1, 0]
    found = concentrations(torch.tensor(points), torch.tensor(labels), torch.tensor(centres), 0.7)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_points_on_their_centres_get_the_plain_temperature():
    centres = torch.eye(3)
    found = concentrations(centres.repeat(4, 1), torch.arange(3).repeat(4), centres, 1.0)
    assert found.tolist() == pytest.approx([1.0, 1.0, 1.0])
