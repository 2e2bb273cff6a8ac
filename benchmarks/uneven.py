"""Even and uneven parts of sets of images: the default, k-means, and UMAP + k-means on the same pretrained features.

Parts are drawn at random, each from a seed of its own, `--first` and the next ones: a random part, thirty of a kind, a
long tail, three kinds of very unlike size, or some kinds whole. Labels draw and score, nothing else. Results are
written as they come; started again, the script resumes. The rule was chosen on draws 100 to 105 and
200 to 208; report on others.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from frozen import Features, Labels, after_umap, plainly, seen
from propos.clustering import choose_clusters, hold, spherical_kmeans, start_from_averages
from propos.common.progress import show_nothing
from propos.evaluation import scores
from propos.networks import Whitening
from propos.runner import Origin, Request, plan
from propos.runner.recipes.pretrained import pretrained
from propos.training.features import prepare_inputs
from sets import published

Row = dict[str, Any]
Counts = Callable[[int], list[int]]  # from the number of kinds to the images of each, the first ones of a random order
PHOTOGRAPHS = "imagenette"
IMAGES = {"cifar-10": 3000, "fashion-mnist": 2000, "tiny-imagenet": 3000, "cifar-20": 2500}


def tail(most: int, least: int) -> Counts:
    """Return the counts of a long tail."""
    return lambda kinds: [round(count) for count in np.geomspace(most, least, kinds)]


def of_each(count: int) -> Counts:
    """Return equal counts."""
    return lambda kinds: [count] * kinds


def whole(kinds: int) -> Counts:
    """Return the counts of some whole kinds."""
    return lambda _: [10**6] * kinds


PARTS: dict[str, dict[str, Counts | int]] = {  # a number: images at random
    PHOTOGRAPHS: {
        "1,000 of all": 1000,
        "30 of a kind": of_each(30),
        "150 to 38": tail(150, 38),
        "150 to 8": tail(150, 8),
        "150, 50 and 15": lambda _: [150, 50, 15],
    },
    "cifar-10": {"2,000 of all": 2000, "30 of a kind": of_each(30), "180 to 8": tail(180, 8), "100 to 8": tail(100, 8)},
    "fashion-mnist": {"1,000 of all": 1000, "30 of a kind": of_each(30), "100 to 8": tail(100, 8)},
    "tiny-imagenet": {"10 kinds": whole(10), "25 kinds": whole(25)},
    "cifar-20": {"1,500 of all": 1500},
}


def drawn(kinds: Labels, wanted: Counts | int, seed: int) -> Int[np.ndarray, " M"]:
    """Return the positions of the images of a part."""
    draw, number = np.random.default_rng(seed), int(kinds.max()) + 1
    order = draw.permutation(number)
    if isinstance(wanted, int):
        return draw.permutation(len(kinds))[:wanted]
    counts = wanted(number)
    each = zip(order[: len(counts)], counts, strict=True)
    return np.concatenate([draw.permutation(np.flatnonzero(kinds == kind))[:count] for kind, count in each])


@cache
def looked_at(name: str, folder: Path | None) -> tuple[Features, Labels]:
    """Return the pretrained network's features of a set, and the kinds of its images."""
    if name == PHOTOGRAPHS:
        assert folder is not None
        features, kinds, _ = seen(folder, 2)
        return features, kinds
    source = published(name, IMAGES[name])
    images = source.batch(np.arange(len(source))).transpose(0, 2, 3, 1)
    with plan(Request(source=images, clusters=2, origin=Origin(start="pretrained")), "cpu") as planned:
        fed = prepare_inputs(planned.config, planned.source, planned.device, show_nothing)
        return fed.batch(np.arange(len(fed))), np.unique(source.labels, return_inverse=True)[1]


def evened(features: Features) -> Float[Tensor, "N C"]:
    """Return unit features along their main directions, as the recipe evens them out."""
    network = pretrained().network
    whitening = Whitening(features.shape[1], min(network.components, len(features) - 1))
    whitening.fit([torch.from_numpy(features)], network.whitening)
    with torch.no_grad():
        return F.normalize(whitening(torch.from_numpy(features)), dim=1)


def by_default(features: Features, clusters: int, seed: int) -> Labels:
    """Return the clusters that the recipe finds."""
    points, draw, settings = evened(features), torch.Generator().manual_seed(seed), pretrained().estep
    chosen = choose_clusters(points, clusters, settings.averaged, settings.restarts, draw)
    if chosen.held:
        return hold(points, chosen.centres)[0].numpy()
    return spherical_kmeans(points, clusters, 0, draw, previous=chosen.centres).labels.numpy()


def by_kmeans_alone(features: Features, clusters: int, seed: int) -> Labels:
    """Return the clusters of the default before: those of k-means from averaged images, whatever their sizes."""
    points, draw, settings = evened(features), torch.Generator().manual_seed(seed), pretrained().estep
    start = start_from_averages(points, clusters, settings.averaged, settings.restarts, draw)
    return spherical_kmeans(points, clusters, 0, draw, previous=start).labels.numpy()


WAYS: dict[str, Callable[[Features, int, int], Labels]] = {
    "k-means": plainly,
    "UMAP + k-means": after_umap,
    "k-means from averages": by_kmeans_alone,
    "the default": by_default,
}
BETTER_OF = ("k-means", "UMAP + k-means")


def measured(name: str, part: str, seed: int, way: str, folder: Path | None) -> Row:
    """Cluster one part in one way and return its scores; the seed draws the part and starts the clustering."""
    features, kinds = looked_at(name, folder)
    chosen = drawn(kinds, PARTS[name][part], seed)
    truth = np.unique(kinds[chosen], return_inverse=True)[1]
    found = scores(truth, np.asarray(WAYS[way](features[chosen], int(truth.max()) + 1, seed), np.int64))
    row = {"set": name, "part": part, "seed": seed, "way": way, "images": len(chosen)}
    return row | {key: round(float(found[key]), 4) for key in ("accuracy", "nmi")}


def measure(path: Path, sets: list[str], seeds: range, folder: Path | None, ways: list[str]) -> list[Row]:
    """Return every row that is wanted, measuring those that the file does not hold yet."""
    done: list[Row] = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(row["set"], row["part"], row["seed"], row["way"]) for row in done}
    path.parent.mkdir(parents=True, exist_ok=True)
    for name, part, seed, way in ((n, p, s, w) for s in seeds for n in sets for p in PARTS[n] for w in ways):
        if (name, part, seed, way) not in known:
            done.append(measured(name, part, seed, way, folder))
            with path.open("a") as file:
                print(json.dumps(done[-1]), file=file)
    return done


def table(rows: list[Row]) -> Iterator[str]:
    """Yield a row for each part: mean accuracy / NMI of its draws, and how far the default is below."""
    yield f"| images | part | draws | {' | '.join(WAYS)} | below the better of both by more than 0.01 |"
    yield "|---" * (len(WAYS) + 4) + "|"
    for name, part in dict.fromkeys((row["set"], row["part"]) for row in rows):
        here = [row for row in rows if (row["set"], row["part"]) == (name, part)]
        of = {way: [row for row in here if row["way"] == way] for way in WAYS}
        means = {
            way: [statistics.mean(row[key] for row in each) for key in ("accuracy", "nmi")] if each else None
            for way, each in of.items()
        }
        cells = [f"{mean[0]:.3f} / {mean[1]:.3f}" if mean else "not measured" for mean in means.values()]
        default, others = means["the default"], [means[way] for way in BETTER_OF]
        short = max((other[0] for other in others if other), default=0.0) - (default[0] if default else 0.0)
        verdict = f"by {short:.3f}" if short > 0.01 else "no"
        yield f"| {name} | {part} | {max(map(len, of.values()))} | {' | '.join(cells)} | {verdict} |"


def main() -> None:
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="photographs, with a folder for each kind")
    parser.add_argument("--sets", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--first", type=int, default=1000, help="the seed of the first draw")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--results", type=Path, default=Path("runs/bench-uneven.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    sets = [name for name in given.sets if name != PHOTOGRAPHS or given.folder is not None]
    seeds = range(given.first, given.first + given.draws)
    rows = measure(given.results, sets, seeds, given.folder, given.ways)
    print(*table([row for row in rows if row["seed"] in seeds and row["set"] in sets]), sep="\n")


if __name__ == "__main__":
    main()
