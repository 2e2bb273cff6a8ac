"""Even and uneven parts of a folder of photographs: where the default is above plain k-means on the same features.

Parts are drawn at random: thirty of a kind, a long tail down to eight, and three kinds of very unlike size. The folder
that an image is in is its kind, for drawing and scoring alone. Medians over seeds.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from frozen import Features, Labels, plainly, seen
from propos.clustering import spherical_kmeans, start_from_averages
from propos.evaluation import scores
from propos.networks import Whitening
from propos.runner.recipes.pretrained import pretrained

DRAWS = 3
LEAST = 8  # images of the smallest kind of a long tail


def parts(kinds: Labels) -> Iterator[tuple[str, Int[np.ndarray, " M"]]]:
    """Yield the name of each part and the positions of its images."""
    yield "all", np.arange(len(kinds))
    most = int(np.bincount(kinds).min())
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        order = rng.permutation(int(kinds.max()) + 1)
        tail = [round(count) for count in np.geomspace(most, LEAST, len(order))]
        for name, counts in (
            ("30 of a kind", [30] * len(order)),
            (f"{most} to {LEAST} of a kind", tail),
            ("three kinds", [most, most // 3, most // 10]),
        ):
            of_each = zip(order[: len(counts)], counts, strict=True)
            chosen = [rng.permutation(np.flatnonzero(kinds == kind))[:count] for kind, count in of_each]
            yield f"{name}, draw {draw}", np.concatenate(chosen)


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
    start = start_from_averages(points, clusters, settings.averaged, settings.restarts, draw)
    return spherical_kmeans(points, clusters, 0, draw, previous=start).labels.numpy()


def main() -> None:
    """Print a row for each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    features, kinds, _ = seen(given.folder, 2)
    print("| images | part | k-means | the default |\n|---|---|---|---|")
    for name, chosen in parts(kinds):
        truth = np.unique(kinds[chosen], return_inverse=True)[1]
        cells = []
        for way in (plainly, by_default):
            found = [scores(truth, way(features[chosen], int(truth.max()) + 1, seed)) for seed in range(given.seeds)]
            cells.append(
                " / ".join(f"{statistics.median(each[key] for each in found):.3f}" for key in ("accuracy", "nmi"))
            )
        print(f"| {len(chosen):,} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
