"""A tree of clusters grown from embeddings: clusters are divided by k-means and merged by what confuses them.

Leaves come from k-means within each cluster, so the clusters are a cut of the tree. Two nodes are merged if the images
of one are often assigned softly to the other ("From Logits to Hierarchies", ICML 2025, which needs assignments only).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from propos.runs import CONFIDENCE_TEMPERATURE, Tree, Vectors

LEAVES_A_CLUSTER = 8  # on average
LEAST_IMAGES = 8  # of a leaf, on average
MOST_LEAVES = 1_024
FIT = 8_192  # images of a cluster on which its division is fitted, at most
SAMPLE = 65_536  # images whose soft assignments are averaged, at most
ITERATIONS = 20
BLOCK = 8_192  # embeddings that are in memory at once


@dataclass(frozen=True)
class Leaves:
    """The finest clusters: their centres, the cluster that each divides, and each image's leaf."""

    centres: Float[np.ndarray, "L D"]
    cluster: Int[np.ndarray, " L"]  # place of its cluster among the run's
    leaf: Int[np.ndarray, " N"]


def grow_tree(
    embeddings: Vectors, cluster: Int[np.ndarray, " N"], ids: Int[np.ndarray, " K"], free: int, seed: int
) -> Tree:
    """Grow the tree of a run; nodes that are no clusters of the run get the ids from `free` on."""
    leaves = divide(embeddings, cluster, ids, seed)
    sizes = np.bincount(leaves.leaf, minlength=len(leaves.centres))
    joined = merge_order(confusion(embeddings, leaves), sizes, leaves.cluster)
    return _named(leaves, joined, sizes, ids, free)


def divide(embeddings: Vectors, cluster: Int[np.ndarray, " N"], ids: Int[np.ndarray, " K"], seed: int) -> Leaves:
    """Divide each cluster by k-means into leaves, as many as its share of the images."""
    total = min(MOST_LEAVES, LEAVES_A_CLUSTER * len(ids), max(len(ids), len(cluster) // LEAST_IMAGES))
    draw = np.random.default_rng(seed)
    centres, owner, leaf, done = list[np.ndarray](), list[int](), np.zeros(len(cluster), np.int64), 0
    for place, each in enumerate(ids.tolist()):
        rows = np.flatnonzero(cluster == each)
        count = max(1, round(total * len(rows) / max(1, len(cluster))))
        own = _centres(embeddings, rows, count, draw)
        for start in range(0, len(rows), BLOCK):
            some = rows[start : start + BLOCK]
            leaf[some] = done + (embeddings[some] @ own.T).argmax(axis=1)
        kept = np.unique(leaf[rows]) - done if len(rows) else np.zeros(1, np.int64)
        number = np.zeros(len(own), np.int64)
        number[kept] = np.arange(len(kept))
        leaf[rows] = done + number[leaf[rows] - done]
        centres.append(own[kept])
        owner += [place] * len(kept)
        done += len(kept)
    return Leaves(np.concatenate(centres), np.array(owner), leaf)


def _centres(
    embeddings: Vectors, rows: Int[np.ndarray, " M"], count: int, draw: np.random.Generator
) -> Float[np.ndarray, "C D"]:
    """Return the centres of spherical k-means on some images, from a k-means++ start."""
    if len(rows) == 0:
        return np.zeros((1, embeddings.shape[1]), np.float32)
    points = embeddings[rows[np.linspace(0, len(rows) - 1, min(FIT, len(rows))).round().astype(np.int64)]]
    count = min(count, len(points))
    chosen = [int(draw.integers(len(points)))]
    apart = 1 - points @ points[chosen[0]]
    while len(chosen) < count and apart.max() > 1e-6:
        weight = np.clip(apart, 0, None).astype(np.float64)
        chosen.append(int(draw.choice(len(points), p=weight / weight.sum())))
        apart = np.minimum(apart, 1 - points @ points[chosen[-1]])
    centres = points[chosen]
    for _ in range(ITERATIONS):
        nearest = (points @ centres.T).argmax(axis=1)
        sums = _sums(points, nearest, len(centres))
        length = np.linalg.norm(sums, axis=1, keepdims=True)
        moved = np.where(length > 0, sums / np.maximum(length, 1e-12), centres)
        if np.abs(moved - centres).max() < 1e-4:
            break
        centres = moved
    return centres


def _sums(rows: Float[np.ndarray, "n D"], group: Int[np.ndarray, " n"], groups: int) -> Float[np.ndarray, "G D"]:
    """Return the sum of the rows of each group; as a product it is many times faster than ufunc.at."""
    member = (np.arange(groups)[:, None] == group).astype(rows.dtype)
    sums: Float[np.ndarray, "G D"] = member @ rows
    return sums


def confusion(embeddings: Vectors, leaves: Leaves) -> Float[np.ndarray, "L L"]:
    """Return the mean soft assignment to each leaf (column) of the images of each leaf (row)."""
    count = len(leaves.centres)
    totals, images = np.zeros((count, count)), np.zeros(count)
    rows = np.linspace(0, len(leaves.leaf) - 1, min(SAMPLE, len(leaves.leaf))).round().astype(np.int64)
    for start in range(0, len(rows), BLOCK):
        some = rows[start : start + BLOCK]
        logits = (embeddings[some] @ leaves.centres.T) / CONFIDENCE_TEMPERATURE
        soft = np.exp(logits - logits.max(axis=1, keepdims=True))
        soft /= soft.sum(axis=1, keepdims=True)
        own = leaves.leaf[some]
        totals += _sums(soft, own, count)
        images += np.bincount(own, minlength=count)
    means: Float[np.ndarray, "L L"] = totals / np.maximum(images, 1)[:, None]
    return means


def merge_order(
    confused: Float[np.ndarray, "L L"], sizes: Int[np.ndarray, " L"], cluster: Int[np.ndarray, " L"]
) -> list[tuple[int, int]]:
    """Return which nodes are merged, from fine to coarse; leaf and merge numbers as in scipy's linkage.

    The affinity of two nodes is the mean mutual soft assignment of their leaves. The leaves of each of the run's
    clusters are merged before any two clusters are.
    """
    affinity = (confused + confused.T) / 2
    np.fill_diagonal(affinity, -np.inf)
    weight, number, owner = np.maximum(sizes, 1).astype(np.float64), np.arange(len(sizes)), cluster.copy()
    alive, joined = np.ones(len(sizes), dtype=bool), list[tuple[int, int]]()
    within = owner[:, None] == owner[None, :]
    while alive.sum() > 1:
        allowed = affinity if not (within & np.isfinite(affinity)).any() else np.where(within, affinity, -np.inf)
        one, other = np.unravel_index(int(allowed.argmax()), allowed.shape)
        joined.append((int(number[one]), int(number[other])))
        both = weight[one] * affinity[one] + weight[other] * affinity[other]
        affinity[one] = affinity[:, one] = both / (weight[one] + weight[other])
        affinity[other] = affinity[:, other] = -np.inf
        affinity[one, one], alive[other] = -np.inf, False
        weight[one] += weight[other]
        number[one] = len(sizes) + len(joined) - 1
    return joined


def _named(
    leaves: Leaves,
    joined: list[tuple[int, int]],
    sizes: Int[np.ndarray, " L"],
    ids: Int[np.ndarray, " K"],
    free: int,
) -> Tree:
    """Return the tree with ids: those of the run's clusters where a node is one, else free ones from the root down."""
    count = len(sizes)
    size = np.concatenate([sizes, np.zeros(len(joined), np.int64)])
    owner = np.concatenate([leaves.cluster, np.full(len(joined), -1)])
    pairs = list[tuple[int, int]]()
    for node, (one, other) in enumerate(joined, start=count):
        size[node] = size[one] + size[other]
        owner[node] = owner[one] if owner[one] == owner[other] else -1
        pairs.append((one, other) if size[one] >= size[other] else (other, one))
    last = {int(each): node for node, each in enumerate(owner) if each >= 0}  # the whole cluster: its last node
    name = {node: int(ids[each]) for each, node in last.items()}
    for node in reversed(range(len(size))):
        if node not in name:
            name[node], free = free, free + 1
    merges = tuple((name[node], name[one], name[other]) for node, (one, other) in enumerate(pairs, start=count))
    return Tree(tuple(name[node] for node in range(count)), merges, leaves.leaf)
