"""Time "more like this" and the tree on 60,000 images: the server's answers, and the growing of the tree.

Embeddings are drawn around as many directions as there are clusters; nothing is scored.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from propos.evaluation.hierarchy import grow_tree
from propos.review.server.similar import find_similar
from propos.runs import VectorFile


class Embeddings:
    """What the server reads of a run."""

    def __init__(self, path: Path) -> None:
        self.embedding_rows = VectorFile(path)


def main() -> None:
    """Print milliseconds: the median of several answers, and the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=60_000)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--times", type=int, default=9)
    given = parser.parse_args()
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((given.clusters, given.dimension))
    cluster = draw.integers(given.clusters, size=given.images).astype(np.int32)
    points = centres[cluster] + 1.5 * draw.standard_normal((given.images, given.dimension))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "embeddings.npy"
        np.save(path, (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32))
        run = Embeddings(path)
        many = {"yes": list(range(1_000)), "no": list(range(2_000, 3_000)), "count": 1_000}
        for name, query in (("nearest", {"yes": [7], "count": 1_000}), ("after 2,000 answers", many)):
            wall, used = [], []
            for _ in range(given.times):
                started, processor = time.perf_counter(), time.process_time()
                find_similar(run, json.dumps(query).encode())  # type: ignore[arg-type]
                wall.append(1_000 * (time.perf_counter() - started))
                used.append(1_000 * (time.process_time() - processor))
            print(
                f"{name}: first {wall[0]:.0f} ms, median {np.median(wall):.0f} ms, processor {np.median(used):.0f} ms"
            )
        started, processor = time.perf_counter(), time.process_time()
        tree = grow_tree(run.embedding_rows, cluster, np.arange(given.clusters), given.clusters, 0)
        wall_s, used_s = time.perf_counter() - started, time.process_time() - processor
        print(f"tree of {len(tree.leaves)} leaves: {wall_s:.1f} s, processor {used_s:.1f} s")


if __name__ == "__main__":
    main()
