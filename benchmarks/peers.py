"""Standard clusterings of pixels: k-means, Ward, spectral clustering, UMAP with k-means or a mixture."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture

from propos.data import Source

Pixels = Float[np.ndarray, "N D"]
Labels = Int[np.ndarray, " N"]


def pixels_of(source: Source) -> Pixels:
    """Return images as rows of numbers from 0 to 1."""
    return source.batch(np.arange(len(source))).reshape(len(source), -1).astype(np.float32) / 255


def umap_of(pixels: Pixels, seed: int) -> Float[np.ndarray, "N 2"]:
    """Return the images laid out as UMAP's documentation does it for clustering."""
    from umap import UMAP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        laid: Float[np.ndarray, "N 2"] = UMAP(n_neighbors=30, min_dist=0.0, random_state=seed).fit_transform(pixels)
    return laid


def mixture(points: Pixels, clusters: int, seed: int) -> Labels:
    """Return the components of a mixture of Gaussians that points belong to."""
    found: Labels = GaussianMixture(clusters, n_init=5, random_state=seed).fit_predict(points.astype(np.float64))
    return found


def spectral(pixels: Pixels, clusters: int, seed: int) -> Labels:
    """Return spectral clusters of the graph of ten nearest neighbours."""
    method = SpectralClustering(clusters, affinity="nearest_neighbors", n_neighbors=10, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the graph has several parts
        found: Labels = method.fit_predict(pixels)
    return found


PEERS: dict[str, Callable[[Pixels, int, int], Labels]] = {
    "k-means": lambda pixels, clusters, seed: KMeans(clusters, n_init=10, random_state=seed).fit_predict(pixels),
    "Ward": lambda pixels, clusters, seed: AgglomerativeClustering(clusters).fit_predict(pixels),
    "spectral": spectral,
    "UMAP + k-means": lambda pixels, clusters, seed: KMeans(clusters, n_init=10, random_state=seed).fit_predict(
        umap_of(pixels, seed)
    ),
    "UMAP + mixture": lambda pixels, clusters, seed: mixture(umap_of(pixels, seed), clusters, seed),
}
REPEATS = ("Ward",)  # whatever the seed
