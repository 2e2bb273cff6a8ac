"""How time, memory and disk space grow with the number of images, on made-up features and rows: nothing is decoded.

python benchmarks/scale.py [--images 100000 1000000] [--parts NAME …] [--threads N]

Each part runs in a process of its own. From 100,000 to a million images, seconds may grow by 11 times at most.
To add a part, write a function that prepares its data and returns the work to measure, and list it in PARTS.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from propos.clustering import nearest_neighbours, sample_positions, spherical_kmeans, suggest_clusters
from propos.runner.resource_usage import peak_memory, reset_peak_memory
from propos.runs import ImageTable, VectorFile, write_parts, write_table
from propos.training.model import predict_from_embeddings

SIZES = (100_000, 1_000_000, 10_000_000)
DIMENSION, KINDS = 64, 200  # of the embeddings of photographs, and of the kinds that they are drawn from
CLUSTERS, MANY_CLUSTERS = 100, 1000
MOST_GROWTH = 11
BLOCK = 65_536

Work = Callable[[], object]


def unit_vectors(images: int, dimension: int = DIMENSION) -> torch.Tensor:
    """Draw unit vectors around the centres of some kinds, a block at a time."""
    draw = torch.Generator().manual_seed(0)
    centres = torch.randn(KINDS, dimension, generator=draw)
    table = torch.empty(images, dimension)
    for rows in table.split(BLOCK):
        own = torch.randint(KINDS, (len(rows),), generator=draw)
        rows.copy_(F.normalize(centres[own] + torch.randn(len(rows), dimension, generator=draw), dim=1))
    return table


def names(start: int, stop: int) -> list[str]:
    """Return names of images, in folders of a thousand."""
    return [f"photographs/{number // 1000:05d}/{number:09d}.jpg" for number in range(start, stop)]


def last_line(images: int, folder: Path) -> Work:
    """Cluster, confidence and distance of every image with many clusters, and the table of the run."""
    points, every = unit_vectors(images), names(0, images)
    prototypes = points[torch.linspace(0, images - 1, MANY_CLUSTERS).long()].clone()
    labels = torch.arange(images) % MANY_CLUSTERS

    def work() -> None:
        found = predict_from_embeddings(points, prototypes, labels)
        table = ImageTable(every, found.cluster, found.confidence, found.distance)
        write_table(table, folder / "clusters.parquet")

    return work


def k_means(images: int, folder: Path) -> Work:
    """K-means as an E-step runs it: one restart."""
    points = unit_vectors(images)
    return lambda: spherical_kmeans(points, CLUSTERS, 1, torch.Generator().manual_seed(0))


def predicted_table(images: int, folder: Path) -> Work:
    """The table of `propos predict`, written while images are predicted."""

    def parts() -> Iterator[ImageTable]:
        for start in range(0, images, 512):
            stop = min(start + 512, images)
            column = np.linspace(0, 1, stop - start, dtype=np.float32)
            yield ImageTable(names(start, stop), np.arange(start, stop) % CLUSTERS, column, column)

    return lambda: write_parts(parts(), folder / "predicted.csv")


def suggested_k(images: int, folder: Path) -> Work:
    """`propos suggest-k` of a finished run: a sample of its embeddings is read."""
    np.save(folder / "embeddings.npy", unit_vectors(images).numpy())

    def work() -> None:
        rows, draw = VectorFile(folder / "embeddings.npy"), torch.Generator().manual_seed(0)
        sample = rows[sample_positions(len(rows), 10, draw).numpy()]
        suggest_clusters(torch.from_numpy(sample), 9, 10, draw)

    return work


def neighbours(images: int, folder: Path) -> Work:
    """Each image's ten nearest neighbours: exact up to 200,000 images, by an inverted file above."""
    points = unit_vectors(images)
    return lambda: nearest_neighbours(points, 10)


PARTS: dict[str, Callable[[int, Path], Work]] = {
    "last line": last_line,
    "k-means": k_means,
    "predicted table": predicted_table,
    "suggest-k": suggested_k,
    "neighbours": neighbours,
}


def measure(part: str, images: int, threads: int) -> dict[str, float]:
    """Measure a part in this process: seconds, and by how many bytes memory and disk space grew."""
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory(prefix="propos-scale-") as place:
        folder = Path(place)
        work, held = PARTS[part](images, folder), _disk(folder)
        reset_peak_memory()
        before, began = peak_memory(), time.perf_counter()
        work()
        seconds, after = time.perf_counter() - began, peak_memory()
        memory = float("nan") if before is None or after is None else after - before
        return {"seconds": seconds, "memory": memory, "disk": _disk(folder) - held}


def _disk(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def main() -> None:
    """Print a line for each part and number of images, and each part's growth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="+", default=SIZES)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.parts[0], given.images[0], given.threads)))
        return
    print(f"{'part':18}{'images':>12}{'seconds':>10}{'memory':>10}{'disk':>10}  growth")
    for part in given.parts:
        before: dict[int, float] = {}
        for images in given.images:
            own = ["--one", "--parts", part, "--images", str(images), "--threads", str(given.threads)]
            said = subprocess.run([sys.executable, __file__, *own], check=True, capture_output=True, text=True).stdout
            found = json.loads(said)
            growth = found["seconds"] / before[images // 10] if images // 10 in before else None
            before[images] = found["seconds"]
            words = "" if growth is None else f"{growth:5.1f}×{'' if growth <= MOST_GROWTH else '  too much'}"
            sizes = f"{found['memory'] / 2**20:7.0f} MB{found['disk'] / 2**20:7.0f} MB"
            print(f"{part:18}{images:12,}{found['seconds']:10.2f}{sizes}  {words}", flush=True)


if __name__ == "__main__":
    main()
