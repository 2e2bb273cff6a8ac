"""The map of a run that trains."""

import numpy as np

from propos.training.scatter import EDGE, PALETTE, SIDE, directions, scatter


def test_the_directions_are_those_in_which_the_prototypes_differ():
    prototypes = np.array([[3.0, 0, 1, 0], [-3, 0, 1, 0], [0, 2, 1, 0], [0, -2, 1, 0]])
    found = directions(prototypes, None)
    assert np.allclose(np.abs(found), [[1, 0, 0, 0], [0, 1, 0, 0]])


def test_a_map_does_not_flip_between_two_pictures():
    rng = np.random.default_rng(0)
    prototypes = rng.normal(size=(5, 8)) * [5, 3, 1, 1, 1, 1, 1, 1]
    earlier = directions(prototypes, None)
    mirrored = earlier[::-1] * [[-1], [1]]  # as it might have been drawn
    assert np.allclose(directions(prototypes, mirrored), mirrored)


def test_one_cluster_has_no_map():
    assert directions(np.ones((1, 4)), None) is None


def test_each_image_is_a_dot_of_its_clusters_colour():
    places = np.array([[0.0, 0.0], [1.0, 0.5], [9.0, 9.0]])
    drawn = scatter(places, np.array([0, 11, -1]), np.eye(2))  # the last is left out by corrections
    bottom, right = SIDE - 1 - EDGE, SIDE - 1 - EDGE
    assert (drawn[bottom, EDGE] == PALETTE[0]).all()
    assert (drawn[SIDE // 2, right] == PALETTE[1]).all()
    assert (drawn < 255).any(axis=2).sum() == 2 * 9
