"""The layout of the map: t-SNE of the embeddings."""

from __future__ import annotations

import warnings

import numpy as np
from jaxtyping import Float, Int

from propos.common.progress import Progress
from propos.runs import Vectors

MOST_LAID_OUT = 50_000
FEWEST = 16  # from this number of images on, t-SNE; below, principal components
PERPLEXITY = 30.0
EARLY, LATE = 250, 500  # iterations with groups pulled together, then freely
FEW, FEW_EARLY, FEW_LATE = 500, 100, 200  # few images converge sooner
MANY = 10_000  # images from which interpolation is quicker than a tree
EXAGGERATION = 12
MOST_COMPARED = 10**12  # numbers, of all images with all: a minute of one thread
SAY_EVERY = 25
NEIGHBOURS = 5
BLOCK = 4_096


def lay_out(
    embeddings: Vectors,
    cluster: Int[np.ndarray, " N"],
    seed: int,
    progress: Progress = lambda done, total: None,
) -> Float[np.ndarray, "N 2"]:
    """Return positions in the unit square, the same for the same seed.

    Above 50,000 images a random sample is laid out, and every other image is put amid its nearest neighbours of its
    cluster in the sample.
    """
    count = len(embeddings)
    if count < FEWEST:
        return _in_unit_square(_main_directions(embeddings[:]))
    if count <= MOST_LAID_OUT:
        return _in_unit_square(_neighbour_embedding(embeddings[:], seed, progress))
    sample = np.sort(np.random.default_rng(seed).permutation(count)[:MOST_LAID_OUT])
    positions = np.zeros((count, 2))
    positions[sample] = _neighbour_embedding(embeddings[sample], seed, progress)
    _place_others(embeddings, cluster, sample, positions)
    return _in_unit_square(positions)


def _main_directions(embeddings: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N 2"]:
    """Project on the two directions of largest variance, their signs fixed."""
    centred = embeddings - embeddings.mean(axis=0)
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    positions = np.zeros((len(embeddings), 2))
    use = min(2, len(scale))
    positions[:, :use] = left[:, :use] * scale[:use]
    return positions * np.where(positions[np.abs(positions).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)


def _neighbour_embedding(
    embeddings: Float[np.ndarray, "N D"], seed: int, progress: Progress
) -> Float[np.ndarray, "N 2"]:
    """Run openTSNE from the main directions, its sums on one thread: over several they would differ between runs."""
    from openTSNE import TSNEEmbedding, affinity, initialization

    count = len(embeddings)
    early, late = (EARLY, LATE) if count > FEW else (FEW_EARLY, FEW_LATE)
    done = 0

    def say(iteration: int, *_: object) -> None:
        progress(done + iteration, early + late)

    options = {"n_jobs": 1, "callbacks": say, "callbacks_every_iters": SAY_EVERY, "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        perplexity = min(PERPLEXITY, (count - 1) / 3)
        # Comparing all with all measured faster than openTSNE's own choice, an approximation (docs/report.md).
        how = "exact" if embeddings.size * count <= MOST_COMPARED else "auto"
        near = affinity.PerplexityBasedNN(embeddings, perplexity, method=how, n_jobs=1, random_state=seed)
        start = initialization.rescale(_main_directions(embeddings) + _grain(count, seed))
        way = "bh" if count < MANY else "fft"
        begun = TSNEEmbedding(start, near, negative_gradient_method=way, **options)
        begun = begun.optimize(early, exaggeration=EXAGGERATION, momentum=0.5)
        done = early
        place = begun.optimize(late, momentum=0.8)
    progress(early + late, early + late)
    return np.asarray(place, dtype=np.float64)


def _grain(count: int, seed: int) -> Float[np.ndarray, "N 2"]:
    """Return tiny shifts, so that identical images can part."""
    return np.random.default_rng(seed).normal(0, 1e-4, (count, 2))


def _place_others(
    embeddings: Vectors,
    cluster: Int[np.ndarray, " N"],
    sample: Int[np.ndarray, " S"],
    positions: Float[np.ndarray, "N 2"],
) -> None:
    """Put the images outside the sample at the mean of their nearest neighbours in it."""
    others = np.setdiff1d(np.arange(len(embeddings)), sample, assume_unique=True)
    for number in np.unique(cluster[others]):
        known = sample[cluster[sample] == number]
        known = sample if len(known) == 0 else known
        points, wanted = embeddings[known], others[cluster[others] == number]
        for start in range(0, len(wanted), BLOCK):
            block = wanted[start : start + BLOCK]
            likeness = embeddings[block] @ points.T
            few = min(NEIGHBOURS, len(known))
            nearest = np.argpartition(-likeness, few - 1, axis=1)[:, :few]
            positions[block] = positions[known[nearest]].mean(axis=1)


def _in_unit_square(positions: Float[np.ndarray, "N 2"]) -> Float[np.ndarray, "N 2"]:
    """Move and scale positions into the unit square, keeping their shape, in its middle."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    extent = float((high - low).max()) or 1.0
    inside: Float[np.ndarray, "N 2"] = (positions - (low + high) / 2) / extent + 0.5
    return inside
