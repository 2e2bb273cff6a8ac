"""Whitened points, compared with scikit-learn's whitened PCA."""

import numpy as np
import torch
from sklearn.decomposition import PCA

from propos.clustering import whitened


def correlated(seed=0):
    draw = np.random.default_rng(seed)
    return draw.normal(size=(200, 5)) @ draw.normal(size=(5, 5)) + 3.0


def test_angles_are_those_of_a_whitened_pca():
    points = correlated()
    ours = whitened(torch.tensor(points)).numpy()
    theirs = PCA(whiten=True).fit_transform(points)
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-9)


def test_a_direction_in_which_nothing_differs_stays_out():
    flat = np.concatenate([correlated(), np.full((200, 1), 2.0)], axis=1)
    np.testing.assert_allclose(whitened(torch.tensor(flat)).numpy()[:, 5], 0.0, atol=1e-9)
    alike = torch.ones(6, 3)
    assert torch.equal(whitened(alike), torch.zeros(6, 3))  # no numbers that are none
