"""Compare trees of clusters with hierarchies of labels: CIFAR-100's 20 over 100, Tiny ImageNet's classes in WordNet.

All trees are of the same features (pretrained, evened out). "propos" is the tree of a run of 20 clusters; "leaves" are
other merges of its leaves: L2H as published, average and Ward linkage of their centres, and propos' rule without the
run's clusters. Ward and average linkage of all images are the usual ones. Scores, over all pairs of images of a class:

- dendrogram purity: the mean share of the class among the images of the smallest node that holds both;
- excess: the mean binary logarithm of that node's size over the class's; 0 is perfect, a unit doubles the size. (The
  published least hierarchical distance counts merges, which are not comparable between trees of unlike leaves.)

Labels score, nothing else. Tiny ImageNet's coarse classes are its classes' hypernyms at a depth of WordNet.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import linkage

from features import evened, kept_features
from propos.clustering import spherical_kmeans
from propos.data.published.pickles import read_pickle
from propos.evaluation.hierarchy import Leaves, confusion, divide, merge_order
from propos.runs import CONFIDENCE_TEMPERATURE

CLUSTERS = 20
DEPTHS = (6, 8)  # of WordNet's hypernyms below "entity"
Merges = list[tuple[int, int]]
Labels = Int[np.ndarray, " N"]


def purity_and_excess(leaf: Labels, merges: Merges, labels: Labels) -> tuple[float, float]:
    """Return dendrogram purity and excess of a tree."""
    count, classes = int(leaf.max()) + 1, int(labels.max()) + 1
    held = np.zeros((count + len(merges), classes))
    np.add.at(held, (leaf, labels), 1)
    whole = held[:count].sum(axis=0)
    pairs = purity = excess = 0.0
    for node in range(len(held)):
        if node < count:
            met = held[node] * (held[node] - 1) / 2
        else:
            one, other = merges[node - count]
            met = held[one] * held[other]
            held[node] = held[one] + held[other]
        size = held[node].sum()
        if size == 0:
            continue
        pairs += met.sum()
        purity += float((met * held[node] / size).sum())
        excess += float((met * np.log2(np.maximum(size / np.maximum(whole, 1), 1))).sum())
    return purity / pairs, excess / pairs


def as_published(soft: Float[np.ndarray, "N L"], leaf: Labels) -> Merges:
    """Return the merges of L2H: the least confident group joins the one that its images would go to instead."""
    groups = {place: [place] for place in range(soft.shape[1])}
    merges: Merges = []
    while len(groups) > 1:
        names = list(groups)
        mass = np.stack([soft[:, groups[name]].sum(axis=1) for name in names], axis=1)
        own = mass.argmax(axis=1)
        score = np.array([mass[own == place, place].sum() for place in range(len(names))])
        weakest = int(score.argmin())
        rest = mass[own == weakest].copy()
        rest[:, weakest] = 0
        rest /= np.maximum(rest.sum(axis=1, keepdims=True), 1e-12)
        gained = rest.sum(axis=0) if len(rest) else mass.sum(axis=0) * (np.arange(len(names)) != weakest)
        gained[weakest] = -1
        one, other = names[weakest], names[int(gained.argmax())]
        groups[soft.shape[1] + len(merges)] = groups.pop(one) + groups.pop(other)
        merges.append((one, other))
    return merges


def linked(points: Float[np.ndarray, "L D"], method: str) -> Merges:
    """Return the merges of a linkage of unit vectors."""
    found = linkage(points, method, metric="cosine" if method == "average" else "euclidean")
    return [(int(one), int(other)) for one, other, *_ in found]


def trees(points: Float[np.ndarray, "N D"], seed: int) -> dict[str, tuple[Labels, Merges, float]]:
    """Return each image's leaf, the merges, and the processor's seconds of every tree."""
    found = spherical_kmeans(torch.from_numpy(points), CLUSTERS, 20, torch.Generator().manual_seed(seed))
    cluster = found.labels.numpy().astype(np.int32)
    started = time.process_time()
    leaves = divide(points, cluster, np.arange(CLUSTERS), seed)
    confused, sizes = confusion(points, leaves), np.bincount(leaves.leaf, minlength=len(leaves.centres))
    own = merge_order(confused, sizes, leaves.cluster)
    seconds = time.process_time() - started
    centres = leaves.centres / np.linalg.norm(leaves.centres, axis=1, keepdims=True)
    ways: dict[str, Callable[[], Merges]] = {
        "leaves, propos' rule alone": lambda: merge_order(confused, sizes, np.zeros(len(sizes), np.int64)),
        "leaves, L2H as published": lambda: as_published(assigned(points, leaves), leaves.leaf),
        "leaves, average linkage": lambda: linked(centres, "average"),
        "leaves, Ward linkage": lambda: linked(centres, "ward"),
    }
    everyone = np.arange(len(points))
    made = {"propos": (leaves.leaf, own, seconds)}
    made |= {name: (leaves.leaf, *timed(way)) for name, way in ways.items()}
    if seed == 0:  # they draw nothing
        made |= {
            f"images, {each} linkage": (everyone, *timed(lambda e=each: linked(points, e)))
            for each in ("average", "ward")
        }
    return made


def timed(way: Callable[[], Merges]) -> tuple[Merges, float]:
    """Return what was made, and the processor's seconds."""
    started = time.process_time()
    return way(), time.process_time() - started


def assigned(points: Float[np.ndarray, "N D"], leaves: Leaves) -> Float[np.ndarray, "N L"]:
    """Return the soft assignments of images to leaves."""
    weight = np.exp(points @ leaves.centres.T / CONFIDENCE_TEMPERATURE)
    soft: Float[np.ndarray, "N L"] = weight / weight.sum(axis=1, keepdims=True)
    return soft


def fine_labels(data: Path, count: int) -> Labels:
    """Return CIFAR-100's own classes of its first images."""
    return np.array(read_pickle(data / "cifar-100-python" / "train")["fine_labels"][:count])


def hypernyms(data: Path, wordnet: Path, labels: Labels, depth: int) -> Labels:
    """Return the hypernym of each image's class at a depth of WordNet, as numbers; shallower classes are their own."""
    synsets = sorted((data / "tiny-imagenet-200" / "wnids.txt").read_text().split())
    up = {}
    for line in (wordnet / "data.noun").read_text().splitlines():
        if line[:8].isdigit():
            parent = re.search(r" @i? (\d{8}) n", line)
            up[line[:8]] = None if parent is None else parent[1]
    names = []
    for synset in synsets:
        path = [synset[1:]]
        while (parent := up.get(path[-1])) is not None:
            path.append(parent)
        names.append(path[::-1][min(depth, len(path) - 1)])
    number: Labels = np.unique(names, return_inverse=True)[1]
    return number[labels]


def main() -> None:
    """Print the scores of every tree: the mean of the seeds, and their spread."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", type=Path, help="folder that keeps the features of the sets")
    parser.add_argument("data", type=Path, help="folder of data sets")
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"))
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    cifar, coarse = kept_features("cifar-20", given.features)
    tiny, classes = kept_features("tiny-imagenet", given.features)
    deep = {f"WordNet {d}": hypernyms(given.data, given.wordnet, classes, d) for d in DEPTHS}
    sets = {
        "CIFAR-100": (evened(cifar), {"100": fine_labels(given.data, len(cifar)), "20": coarse}),
        "Tiny ImageNet": (evened(tiny), {"200": classes, **deep}),
    }
    for name, (points, levels) in sets.items():
        rows: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for seed in range(given.seeds):
            for way, (leaf, merges, seconds) in trees(points, seed).items():
                for level, labels in levels.items():
                    rows.setdefault((way, level), []).append(purity_and_excess(leaf, merges, labels))
                if seed == 0:
                    print(f"{name}: {way}: {seconds:.2f} s", flush=True)
        for (way, level), scores in rows.items():
            means, spread = np.mean(scores, axis=0), np.ptp(scores, axis=0)
            kinds = f"{level} ({len(np.unique(levels[level]))})"
            scored = " | ".join(f"{mean:.3f} ±{off / 2:.3f}" for mean, off in zip(means, spread, strict=True))
            print(f"{name} | {kinds} | {way} | {scored}", flush=True)


if __name__ == "__main__":
    main()
