"""Spherical k-means compared with faiss and scikit-learn, with a bare matrix product, and with an epoch of ProPos.

Everything compared is run in turn, round by round, in one process; times and cosines are medians over rounds, ratios
medians of the ratios within a round. With OMP_NUM_THREADS=1 times are of the processor, so other programs matter
little.
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
import torch
from sklearn.cluster import KMeans, MiniBatchKMeans
from torch import Tensor

from propos import SphericalKMeans
from propos.clustering import churn, spherical_kmeans, stable_numbers
from propos.clustering.lloyd import cluster_sums, directions
from propos.clustering.points import prepare, spans
from propos.config import Config, TrainSettings
from propos.data import open_source
from propos.losses import prototype_scattering, symmetric
from propos.training.embedding import embed
from propos.training.estimate import late_state
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.order import epoch_order
from propos.training.prepare import prepare as complete
from side_by_side import peak_memory

DATA = Path(os.environ.get("PROPOS_DATA", Path(__file__).parents[2] / "shared" / "data"))
IMAGENET = 1_281_167
ITERATIONS = 25  # of faiss, unless set
FAISS_SAMPLE = 256  # points for each cluster, unless set
Centres = Callable[[np.ndarray, int], np.ndarray]
verdicts: list[str] = []


def main() -> None:
    """Measure, print the tables, then a line for every target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer points and rounds: a few minutes")
    parser.add_argument(
        "--parts", default="equal,few,many,pass,epoch", help="which of equal,few,many,pass,epoch to run"
    )
    options = parser.parse_args()
    parts = options.parts.split(",")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    if "equal" in parts:
        for clusters in (10, 100):
            equal_work(fashion(10_000 if options.quick else 60_000), clusters, seeds=3 if options.quick else 7)
    if "few" in parts:
        few_clusters(fashion(10_000 if options.quick else 60_000), seeds=2 if options.quick else 5)
    if "many" in parts:
        for clusters in (80, 100):
            many_clusters(fashion(10_000 if options.quick else 60_000), clusters, seeds=1 if options.quick else 3)
    if "pass" in parts:
        one_pass(IMAGENET // 10 if options.quick else IMAGENET, rounds=3)
    if "epoch" in parts:
        epoch(torch.from_numpy(fashion(10_000)), rounds=2 if options.quick else 5)
    print("", *verdicts, sep="\n")


def verdict(what: str, met: bool) -> None:
    verdicts.append(f"{'ok    ' if met else 'missed'} {what}")


def clock() -> float:
    """Return the time: the processor's where there is one thread."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def seconds(work: Callable[[], object]) -> float:
    start = clock()
    work()
    return clock() - start


# Compared with faiss and scikit-learn


def fashion(images: int) -> np.ndarray:
    """Return Fashion-MNIST's training images, centred, their first 256 principal components, at unit length."""
    with gzip.open(DATA / "fashion-mnist" / "train-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), dtype=np.uint8, offset=16).reshape(60_000, -1)[:images]
    rows = pixels.astype(np.float32) / 255
    rows -= rows.mean(axis=0)
    _, vectors = np.linalg.eigh(rows.T @ rows)
    rows = rows @ vectors[:, ::-1][:, :256]
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def mean_cosine(rows: np.ndarray, centres: np.ndarray) -> float:
    """Return the mean cosine of points to their nearest centre's direction."""
    centres = centres / np.linalg.norm(centres, axis=1, keepdims=True)
    return float((rows @ centres.T).max(axis=1).mean(dtype=np.float64))


def ours(clusters: int, restarts: int, scout_size: object) -> Centres:
    def fit(rows: np.ndarray, seed: int) -> np.ndarray:
        model = SphericalKMeans(clusters, n_init=restarts, random_state=seed, scout_size=scout_size)
        return model.fit(rows).cluster_centers_

    return fit


def faiss_kmeans(clusters: int, restarts: int, points_a_cluster: int | None = None) -> Centres:
    """Return faiss's k-means of all points, or of its own sample of `points_a_cluster` for each cluster."""

    def fit(rows: np.ndarray, seed: int) -> np.ndarray:
        most = points_a_cluster or len(rows)
        model = faiss.Kmeans(
            rows.shape[1], clusters, spherical=True, nredo=restarts, seed=seed, max_points_per_centroid=most
        )
        model.train(rows)
        return model.centroids

    return fit


def scikit_learn(clusters: int, restarts: int, algorithm: str) -> Centres:
    def fit(rows: np.ndarray, seed: int) -> np.ndarray:
        return KMeans(clusters, n_init=restarts, random_state=seed, algorithm=algorithm).fit(rows).cluster_centers_

    return fit


def mini_batches(clusters: int, restarts: int) -> Centres:
    def fit(rows: np.ndarray, seed: int) -> np.ndarray:
        return MiniBatchKMeans(clusters, n_init=restarts, random_state=seed).fit(rows).cluster_centers_

    return fit


def equal_work(rows: np.ndarray, clusters: int, seeds: int) -> None:
    """Compare the same iterations from the same starts, on all points: the results must be the same, too."""

    def starts(seed: int) -> np.ndarray:
        return rows[np.random.default_rng(seed).choice(len(rows), clusters, replace=False)]

    def of_propos(rows: np.ndarray, seed: int) -> np.ndarray:
        return SphericalKMeans(clusters, init=starts(seed), max_iter=ITERATIONS, tol=0).fit(rows).cluster_centers_

    def of_faiss(rows: np.ndarray, seed: int) -> np.ndarray:
        model = faiss.Kmeans(
            rows.shape[1], clusters, niter=ITERATIONS, spherical=True, max_points_per_centroid=len(rows)
        )
        model.train(rows, init_centroids=starts(seed))
        return model.centroids

    title = f"{len(rows):,} points, K = {clusters}, equal work: {ITERATIONS} iterations from the same starts"
    times, cosines = race(title, rows, {"propos": of_propos, "faiss": of_faiss}, seeds)
    faster = times["faiss"] / times["propos"]
    apart = abs(cosines["faiss"] - cosines["propos"])
    verdict(f"equal work, K = {clusters}: {faster:.2f} times as fast as faiss, target 1.5", faster >= 1.5)
    verdict(f"equal work, K = {clusters}: mean cosines differ by {apart:.6f}, target 0.00001", apart <= 1e-5)


def race(title: str, rows: np.ndarray, peers: dict[str, Centres], seeds: int) -> tuple[dict, dict]:
    """Run everyone on every seed in turn; return median seconds and median mean cosine."""
    times: dict[str, list[float]] = {name: [] for name in peers}
    cosines: dict[str, list[float]] = {name: [] for name in peers}
    for seed in range(seeds):
        for name, fit in peers.items():
            start = clock()
            centres = fit(rows, seed)
            times[name].append(clock() - start)
            cosines[name].append(mean_cosine(rows, centres))
    first = next(iter(peers))
    print(f"\n{title}\n\n| | seconds | times propos | mean cosine | lowest to highest |\n|---|---|---|---|---|")
    for name in peers:
        ratio = statistics.median(np.array(times[name]) / np.array(times[first]))
        low, high = min(cosines[name]), max(cosines[name])
        median = statistics.median(cosines[name])
        second = statistics.median(times[name])
        print(f"| {name} | {second:.3g} | {ratio:.2f} | {median:.5f} | {low:.5f} to {high:.5f} |", flush=True)
    medians = ({n: statistics.median(v) for n, v in kept.items()} for kept in (times, cosines))
    return next(medians), next(medians)


def few_clusters(rows: np.ndarray, seeds: int) -> None:
    peers = {
        "propos": ours(10, 10, "auto"),
        "propos, every restart on all points": ours(10, 10, None),
        "faiss, all points": faiss_kmeans(10, 10),
        "faiss, its own sample": faiss_kmeans(10, 10, FAISS_SAMPLE),
        "scikit-learn, Elkan": scikit_learn(10, 10, "elkan"),
        "scikit-learn, Lloyd": scikit_learn(10, 10, "lloyd"),
        "scikit-learn, mini-batches": mini_batches(10, 10),
    }
    times, cosines = race(f"{len(rows):,} points, K = 10, 10 restarts, {seeds} seeds", rows, peers, seeds)
    faster = times["faiss, all points"] / times["propos"]
    behind = max(value for name, value in cosines.items() if not name.startswith("propos")) - cosines["propos"]
    verdict(f"K = 10: {faster:.1f} times as fast as faiss on all points, target 5", faster >= 5)
    verdict(f"K = 10: mean cosine {behind:+.5f} below the best peer's, target 0.0001", behind <= 1e-4)


def many_clusters(rows: np.ndarray, clusters: int, seeds: int) -> None:
    peers = {
        "propos": ours(clusters, 3, "auto"),
        "propos, every restart on all points": ours(clusters, 3, None),
        "faiss, all points": faiss_kmeans(clusters, 3),
        "faiss, its own sample": faiss_kmeans(clusters, 3, FAISS_SAMPLE),
        "scikit-learn, Lloyd": scikit_learn(clusters, 3, "lloyd"),
        "scikit-learn, mini-batches": mini_batches(clusters, 3),
    }
    times, cosines = race(f"{len(rows):,} points, K = {clusters}, 3 restarts, {seeds} seeds", rows, peers, seeds)
    faster = times["faiss, all points"] / times["propos"]
    behind = max(value for name, value in cosines.items() if not name.startswith("propos")) - cosines["propos"]
    verdict(f"K = {clusters}: {faster:.2f} times as fast as faiss on all points, target 2", faster >= 2)
    verdict(f"K = {clusters}: mean cosine {behind:+.5f} below the best peer's, target 0.0001", behind <= 1e-4)


# Compared with a bare matrix product


def one_pass(points: int, rounds: int) -> None:
    """Compare assigning every point and summing every cluster with the product that finds the cosines."""
    clusters, dimension = 1000, 256
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(points, dimension, generator=generator)
    for span in spans(points, 8192):
        data[span] /= data[span].norm(dim=1, keepdim=True)
    centres = data[:clusters].clone()
    held = prepare(data, None, None, sharded=False)

    def product() -> None:
        cosines = torch.empty(8192, clusters)
        for span in spans(points, 8192):
            torch.mm(data[span], centres.T, out=cosines[: span.stop - span.start])

    def iteration() -> None:
        sums, _ = cluster_sums(held, centres[None])
        directions(sums[0], centres)

    times = np.array([[seconds(iteration), seconds(product)] for _ in range(rounds)])
    ratio = float(np.median(times[:, 0] / times[:, 1]))
    one, bare = np.median(times, axis=0)
    print(f"\n{points:,} points of {dimension} dimensions, K = {clusters}\n\n| | |\n|---|---|")
    print(f"| one pass, assignment and sums | {one:.3g} s |\n| bare product | {bare:.3g} s |\n| ratio | {ratio:.3f} |")
    verdict(f"one pass takes {ratio:.3f} times a bare product, target 1.25", ratio <= 1.25)
    extra = peak_memory(lambda: spherical_kmeans(data, clusters, 1, generator, max_iter=3, scout_size=8192))
    if extra is not None:
        print(f"| memory beyond the data ({data.nbytes / 2**20:.0f} MB), a whole fit | {extra:.0f} MB |", flush=True)
        verdict(f"a fit takes {extra:.0f} MB beyond the data, target 200", extra <= 200)


# Within an epoch of ProPos


def epoch(embeddings: Tensor, rounds: int) -> None:
    """Compose an epoch of ProPos from measured parts; what the images show plays no part in their time."""
    images, batch = len(embeddings), 128
    pixels = np.random.default_rng(0).integers(0, 256, size=(images, 32, 32, 3), dtype=np.uint8)
    source, part = open_source(pixels), open_source(pixels[:1024])
    config = complete(Config(clusters=10, method="byol", train=TrainSettings(batch_size=batch)), source)
    learner = build_learner(config, source, torch.device("cpu"))
    positions, labels = epoch_order(0, 0, learner.schedule)[0], torch.arange(images) % 10
    state = late_state(learner)
    found = spherical_kmeans(embeddings, 10, 10, torch.Generator().manual_seed(1))
    before = found.labels.numpy()

    def clustering() -> np.ndarray:
        generator = torch.Generator().manual_seed(0)
        return spherical_kmeans(embeddings, 10, 10, generator, previous=found.centres).labels.numpy()

    after = clustering()
    works: dict[str, Callable[[], object]] = {
        "step": lambda: m_step(learner, source, positions, state),
        "scattering": lambda: scattering(labels[:batch]),
        "embedding": lambda: embed(learner.method.embedder, part, config),
        "k-means": clustering,
        "relabelling": lambda: (stable_numbers(before, after, 10), churn(before, after)),
    }
    for work in works.values():
        work()
    times = np.median([[seconds(work) for work in works.values()] for _ in range(rounds)], axis=0)
    of = dict(zip(works, times.tolist(), strict=True))
    rows = {
        "BYOL, all steps": learner.schedule.steps * of["step"],
        "PSL forward and backward, all steps": learner.schedule.steps * of["scattering"],
        "k-means": of["k-means"],
        "relabelling": of["relabelling"],
        "embedding all images, when fresh": of["embedding"] * images / len(part),
    }
    print(f"\nan epoch of {images:,} images of 32 × 32, ResNet-18, batch {batch}, r = 1\n\n| | seconds |\n|---|---|")
    print(*(f"| {what} | {value:.4g} |" for what, value in rows.items()), sep="\n", flush=True)
    byol, *own, embedding = rows.values()
    share = sum(own) / byol
    fresh, streamed = 1 + share + embedding / byol, 1 + share
    verdict(f"PSL, k-means and relabelling are {100 * share:.2f}% of a BYOL epoch, target 3%", share <= 0.03)
    verdict(f"an epoch with fresh embeddings takes {fresh:.3f} times a BYOL epoch, target 1.15", fresh <= 1.15)
    verdict(f"an epoch with streamed embeddings takes {streamed:.3f} times a BYOL epoch, target 1.04", streamed <= 1.04)


def scattering(labels: Tensor) -> None:
    """Compute PSL of one batch and its gradient for the projections."""
    za, zb, ta, tb = (torch.randn(len(labels), 256) for _ in range(4))
    for projection in (za, zb):
        projection.requires_grad_()
    symmetric(prototype_scattering, (za, tb), (zb, ta), labels, 0.5).backward()


if __name__ == "__main__":
    main()
