"""Spherical k-means beside faiss and scikit-learn, at ImageNet's size, and within a ProPos epoch.

Contestants take turns on the same data, seed by seed, in one process; times and mean cosines are medians over the
seeds, and everyone's centres are judged by the same assignment.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import statistics
import threading
import time
import warnings
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import faiss
import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from propos import SphericalKMeans
from propos.clustering import churn, spherical_kmeans, stable_numbers
from propos.clustering.lloyd import cluster_sums, directions
from propos.clustering.points import prepare as as_points
from propos.config import Config
from propos.data import from_array
from propos.objectives import Outputs, PrototypeScattering
from propos.training import prepare
from propos.training.embedding import BATCH, embed_batches
from propos.training.learner import build_learner
from propos.training.loop import epoch_order
from propos.training.maximization import maximization_step

DATA = Path(os.environ.get("PROPOS_DATA", Path(__file__).parents[2] / "shared" / "data"))
CPU = torch.device("cpu")
MEGABYTE = 2**20
verdicts: list[str] = []


def judge(what: str, measured: float, target: str, met: bool) -> None:
    verdicts.append(f"{'ok    ' if met else 'missed'} {what}: {measured:.5g}, target {target}")


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def median_seconds(work: Callable[[], object], rounds: int) -> float:
    work()
    return statistics.median(seconds(work) for _ in range(rounds))


# Against the peers


def fashion() -> np.ndarray:
    """The 60,000 training images, centred, projected on their 256 main axes, at unit length."""
    with gzip.open(DATA / "fashion-mnist" / "train-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784).astype(np.float32) / 255
    centred = images - images.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    points = centred @ axes[:, ::-1][:, :256]
    return np.ascontiguousarray(points / np.linalg.norm(points, axis=1, keepdims=True), dtype=np.float32)


def mean_cosine(points: np.ndarray, centres: np.ndarray) -> float:
    unit = centres / np.linalg.norm(centres, axis=1, keepdims=True)
    return float((points @ unit.T).max(axis=1).astype(np.float64).mean())


def contestants(clusters: int, restarts: int) -> dict[str, Callable[[np.ndarray, int], np.ndarray]]:
    def ours(scout: str | None) -> Callable[[np.ndarray, int], np.ndarray]:
        def fit(points: np.ndarray, seed: int) -> np.ndarray:
            model = SphericalKMeans(clusters, n_init=restarts, random_state=seed, scout_size=scout)  # type: ignore[arg-type]
            return model.fit(points).cluster_centers_

        return fit

    def theirs(algorithm: str) -> Callable[[np.ndarray, int], np.ndarray]:
        def fit(points: np.ndarray, seed: int) -> np.ndarray:
            return (
                KMeans(clusters, n_init=restarts, random_state=seed, algorithm=algorithm).fit(points).cluster_centers_
            )

        return fit

    def faiss_fit(points: np.ndarray, seed: int) -> np.ndarray:
        model = faiss.Kmeans(
            points.shape[1],
            clusters,
            spherical=True,
            nredo=restarts,
            seed=seed + 1,
            max_points_per_centroid=len(points),
        )
        model.train(points)
        return model.centroids

    return {
        "propos": ours("auto"),
        "propos, every restart on all points": ours(None),
        "faiss, all points": faiss_fit,
        "scikit-learn, Elkan": theirs("elkan"),
        "scikit-learn, Lloyd": theirs("lloyd"),
    }


def against_peers(points: np.ndarray, clusters: int, restarts: int, seeds: int) -> None:
    print(f"\n{len(points):,} × {points.shape[1]}, K = {clusters}, {restarts} restarts, median of {seeds} seeds\n")
    print("| | seconds | times as long as propos | mean cosine |\n|---|---|---|---|")
    rivals = contestants(clusters, restarts)
    times: dict[str, list[float]] = {name: [] for name in rivals}
    cosines: dict[str, list[float]] = {name: [] for name in rivals}
    contestants(clusters, 1)["propos"](points, 99)  # the first call of a process pays for its threads
    for seed in range(seeds):
        for name, fit in rivals.items():
            begin = time.perf_counter()
            centres = fit(points, seed)
            times[name].append(time.perf_counter() - begin)
            cosines[name].append(mean_cosine(points, centres))
    taken = {name: statistics.median(values) for name, values in times.items()}
    reached = {name: statistics.median(values) for name, values in cosines.items()}
    for name in rivals:
        print(f"| {name} | {taken[name]:.3f} | {taken[name] / taken['propos']:.2f} | {reached[name]:.5f} |", flush=True)
    peers = [name for name in rivals if not name.startswith("propos")]
    if clusters == 10:
        ratio = min(taken[name] for name in peers) / taken["propos"]
        judge("K = 10: the fastest peer's time over ours", ratio, "at least 5", ratio >= 5)
        lead = reached["propos"] - max(reached[name] for name in peers)
        judge("K = 10: our mean cosine less the best peer's", lead, "at least -0.0001", lead >= -1e-4)
    else:
        ratio = taken["faiss, all points"] / taken["propos"]
        judge(f"K = {clusters}: faiss's time over ours", ratio, "above 1", ratio > 1)
        lead = reached["propos"] - max(reached[name] for name in peers if name.startswith("scikit"))
        judge(f"K = {clusters}: our mean cosine less scikit-learn's", lead, "at least -0.0001", lead >= -1e-4)


# At ImageNet's size


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peak_growth(work: Callable[[], object]) -> int:
    """Return by how many bytes the process grew at most while it worked."""
    before, peak, done = resident(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return peak - before


def at_scale(quick: bool) -> None:
    count, dimension, clusters = (128_117 if quick else 1_281_167), 256, 1000
    generator = torch.Generator().manual_seed(0)
    data = torch.empty(count, dimension)
    for part in data.split(50_000):
        part.normal_(generator=generator)
        part /= torch.linalg.vector_norm(part, dim=1, keepdim=True)
    centres = data[:clusters].clone()
    points = as_points(data, None, None, sharded=False)

    def one_pass() -> Tensor:
        return directions(cluster_sums(points, centres[None])[0], centres[None])

    def bare(rows: int = 4096) -> None:
        product = torch.empty(rows, clusters)
        for part in data.split(rows):
            torch.mm(part, centres.T, out=product[: len(part)])

    grown = peak_growth(one_pass)
    bare()
    rounds = [(seconds(one_pass), seconds(bare)) for _ in range(3)]
    ratio = statistics.median(ours / theirs for ours, theirs in rounds)
    ours, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    print(f"\n{count:,} × {dimension}, K = {clusters}: one assignment and update beside the bare matrix product\n")
    print("| pass | product | pass / product | memory beyond the data |\n|---|---|---|---|")
    print(f"| {ours:.2f} s | {theirs:.2f} s | {ratio:.3f} | {grown / MEGABYTE:.0f} MB |", flush=True)
    judge("N = 1,281,167: pass over product", ratio, "at most 1.25", ratio <= 1.25)
    judge("N = 1,281,167: memory beyond the data, MB", grown / MEGABYTE, "at most 200", grown <= 200 * MEGABYTE)
    fitted = peak_growth(lambda: spherical_kmeans(data, 100, 1, torch.Generator().manual_seed(0), max_iter=3, tol=0.01))
    judge(
        "a whole fit, K = 100: memory beyond the data, MB", fitted / MEGABYTE, "at most 200", fitted <= 200 * MEGABYTE
    )


# Within a ProPos epoch


def cifar() -> np.ndarray:
    """10,000 CIFAR-10 images, or noise of their shape where they are not to be had: time does not depend on it."""
    size = 2_000 * 3_072
    parts = []
    for path in sorted((DATA / "cifar-10-batches-py").glob("data_batch_*")):
        content = path.read_bytes()
        # The pixels of a batch are one block of bytes behind their length; nothing is unpickled.
        start = content.find(b"B" + size.to_bytes(4, "little")) + 5
        if start >= 5:
            parts.append(np.frombuffer(content, np.uint8, size, start).reshape(-1, 3, 32, 32))
    if not parts:
        return np.random.default_rng(0).integers(256, size=(10_000, 32, 32, 3), dtype=np.uint8)
    return np.ascontiguousarray(np.concatenate(parts).transpose(0, 2, 3, 1))


def in_an_epoch(quick: bool) -> None:
    source = from_array(cifar(), name="cifar")
    settings = {"clusters": 10, "train.batch_size": 128, "train.epochs": 100, "train.warmup": 0}
    config = prepare(Config().with_settings(settings), source)
    learner = build_learner(config.with_settings({"method": "byol"}), source, CPU)
    batches, labels = epoch_order(0, 0, learner.schedule), torch.arange(len(source)) % 10
    byol = median_seconds(lambda: maximization_step(learner, source, batches[0], labels, 50, 0), 1 if quick else 3)

    generator = torch.Generator().manual_seed(0)
    pairs = [
        tuple(torch.randn(128, 256, generator=generator).requires_grad_(place < 1) for _ in "ab") for place in range(3)
    ]
    outputs, scattering = Outputs(*pairs), PrototypeScattering(0.5)  # type: ignore[arg-type]
    psl = median_seconds(lambda: scattering(outputs, labels[:128]).backward(), 20)
    collect = torch.zeros(len(source), 256)
    collecting = median_seconds(lambda: collect.index_copy_(0, batches[0], torch.randn(128, 256)), 20)

    embeddings = torch.cat(list(islice(embed_batches(learner.network.target, source, config), 2)))
    batch_pass = median_seconds(
        lambda: next(iter(embed_batches(learner.network.target, source, config))), 1 if quick else 3
    )
    everything = embeddings.repeat(len(source) // len(embeddings) + 1, 1)[: len(source)]
    everything = everything + 0.1 * everything.std() * torch.randn(everything.shape, generator=generator)
    found = spherical_kmeans(everything, 10, 10, torch.Generator().manual_seed(0))

    def cluster() -> None:
        spherical_kmeans(everything, 10, 10, torch.Generator().manual_seed(1), previous=found.centres)

    def relabel() -> None:
        numbers = torch.tensor(stable_numbers(labels.numpy(), found.labels.numpy(), 10))
        churn(labels.numpy(), numbers[found.labels].numpy())

    clustering, relabelling = median_seconds(cluster, 5), median_seconds(relabel, 5)
    steps = learner.schedule.steps
    epoch, added = steps * byol, steps * psl + clustering + relabelling
    fresh = (epoch + added + batch_pass * len(source) / BATCH) / epoch
    streamed = (epoch + added + steps * collecting) / epoch
    print(f"\nA ProPos epoch of {len(source):,} images, ResNet-18 at 32 px, batch 128, composed from measured parts\n")
    print("| part | seconds |\n|---|---|")
    print(f"| BYOL's steps ({steps} × {byol:.2f} s) | {epoch:.1f} |")
    print(f"| prototype scattering ({steps} × {1000 * psl:.2f} ms) | {steps * psl:.3f} |")
    print(f"| k-means, 10 restarts and the last prototypes | {clustering:.3f} |")
    print(f"| relabelling | {relabelling:.4f} |")
    print(f"| embedding all images anew | {batch_pass * len(source) / BATCH:.1f} |", flush=True)
    share = added / epoch
    judge("epoch: scattering, k-means and relabelling over BYOL's epoch", share, "at most 0.03", share <= 0.03)
    judge("epoch: ProPos over BYOL, fresh embeddings", fresh, "at most 1.15", fresh <= 1.15)
    judge("epoch: ProPos over BYOL, streamed embeddings", streamed, "at most 1.04", streamed <= 1.04)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer seeds and a tenth of the largest problem")
    quick = parser.parse_args().quick
    warnings.filterwarnings("ignore", message=".*SwigPy.*")
    print(f"torch {torch.__version__}, faiss {faiss.__version__}, {torch.get_num_threads()} threads")
    points = fashion()
    against_peers(points, 10, 10, seeds=3 if quick else 5)
    against_peers(points, 100, 3, seeds=1 if quick else 3)
    at_scale(quick)
    in_an_epoch(quick)
    print("\n" + "\n".join(verdicts))


if __name__ == "__main__":
    main()
