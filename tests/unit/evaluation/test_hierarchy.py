"""Trees grown from embeddings, on groups of points whose hierarchy is known."""

import numpy as np
import pytest

from propos.evaluation import hierarchy
from propos.evaluation.hierarchy import Leaves, confusion, divide, grow_tree, merge_order
from propos.runs.tree import read_tree


def groups(directions, images=40, spread=0.02, seed=0):
    """Return unit vectors around directions (degrees on a circle), and the direction of each."""
    draw = np.random.default_rng(seed)
    which = np.repeat(np.arange(len(directions)), images)
    angle = np.radians(np.array(directions)[which]) + spread * draw.standard_normal(len(which))
    return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32), which


# Clusters 0 and 1 lie near each other, 2 opposite; 0 and 2 have two groups each.
DIRECTIONS, OWNER = [0, 15, 60, 180, 195], np.array([0, 0, 1, 2, 2])


@pytest.fixture
def grown(tmp_path):
    points, which = groups(DIRECTIONS)
    cluster = OWNER[which].astype(np.int32)
    return grow_tree(points, cluster, np.arange(3), 3, 0), cluster, which


def test_the_runs_clusters_are_a_cut_of_it(grown, tmp_path):
    tree, cluster, _ = grown
    tree.write(tmp_path)
    assert read_tree(tmp_path, cluster, np.arange(3)) is not None  # which checks exactly this
    assert sorted(tree.ids) == list(range(2 * len(tree.leaves) - 1))


def test_near_clusters_are_merged_before_far_ones_and_groups_are_divided_first(grown):
    tree, _, which = grown
    (coarse, _), _ = tree.cut(tree.root, [tree.root]), None
    assert coarse[0] == coarse[1] != coarse[2]
    for cluster in (0, 2):
        fine, _ = tree.cut(cluster, [cluster])
        found = np.array([fine.get(leaf, -1) for leaf in tree.leaves])[tree.leaf]
        parts = [set(found[which == group].tolist()) for group in np.flatnonzero(cluster == OWNER)]
        assert all(len(part) == 1 for part in parts)
        assert parts[0] != parts[1]


def test_the_child_with_more_images_comes_first(grown):
    tree, _, _ = grown
    images = np.bincount(tree.leaf, minlength=len(tree.leaves)).tolist()
    size = dict(zip(tree.leaves, images, strict=True))
    for node, main, other in tree.merges:
        assert size[main] >= size[other]
        size[node] = size[main] + size[other]


@pytest.mark.parametrize("block", [7, 1_000])
def test_confusion_is_the_mean_soft_assignment(monkeypatch, block):
    monkeypatch.setattr(hierarchy, "BLOCK", block)
    points, which = groups([0, 40, 90], images=10)
    centres = np.stack([points[which == group].mean(axis=0) for group in range(3)])
    leaves = Leaves(centres, np.arange(3), which)
    weight = np.exp(points @ centres.T / 0.1)
    soft = weight / weight.sum(axis=1, keepdims=True)
    expected = [soft[which == group].mean(axis=0) for group in range(3)]
    assert confusion(points, leaves) == pytest.approx(np.array(expected), abs=1e-5)


def test_merges_follow_the_confusion_within_clusters_first():
    confused = np.array([[0.6, 0.1, 0.3, 0], [0.1, 0.9, 0, 0], [0.3, 0, 0.5, 0.2], [0, 0, 0.2, 0.8]])
    sizes = np.ones(4, np.int64)
    # Without clusters 0 and 2 come first (4), then 3, whose mean with both is 0.1, then 1 (0.05 with 4).
    assert merge_order(confused, sizes, np.zeros(4, np.int64)) == [(0, 2), (4, 3), (5, 1)]
    # 0 and 1 are one cluster, 2 and 3 another: pairs of different clusters wait.
    assert merge_order(confused, sizes, np.array([0, 0, 1, 1])) == [(2, 3), (0, 1), (5, 4)]


def test_clusters_without_images_and_equal_images_are_leaves():
    points = np.repeat(np.array([[1.0, 0.0]], np.float32), 50, axis=0)
    leaves = divide(points, np.zeros(50, np.int32), np.arange(2), 0)
    assert leaves.cluster.tolist() == [0, 1]
    assert set(leaves.leaf.tolist()) == {0}
    tree = grow_tree(points, np.zeros(50, np.int32), np.arange(2), 2, 0)
    assert (tree.leaves, tree.merges) == ((0, 1), ((2, 0, 1),))


def test_a_tree_is_the_same_for_the_same_seed():
    points, which = groups(DIRECTIONS, spread=0.3)
    one, other = (grow_tree(points, OWNER[which].astype(np.int32), np.arange(3), 3, 5) for _ in range(2))
    assert one.merges == other.merges
    assert one.leaf.tolist() == other.leaf.tolist()
