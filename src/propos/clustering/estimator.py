"""Spherical k-means as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from propos.clustering.kmeans import MAX_ITERATIONS, TOLERANCE, spherical_kmeans
from propos.clustering.lloyd import Clustering, nearest
from propos.clustering.points import Points, prepare
from propos.clustering.products import dot_products
from propos.common.errors import InputError

Array = np.ndarray[Any, Any]


class SphericalKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Cluster points by direction: k-means on the unit sphere, distances 1 − cosine.

    The result is a fixed point of Lloyd's iteration on all the points, and no cluster is empty. Rows need not be of
    unit length; a zero vector has a label, but does not move a centre. An array is read where it is, a
    memory-mapped one too, and never copied whole unless it is small.

    Parameters:
        n_clusters: number of clusters.
        n_init: number of starts; the best is used. One if `init` is an array.
        init: "k-means++", "random" points, or an array of n_clusters first centres.
        max_iter: maximum number of iterations of a start.
        tol: convergence: no point has a centre nearer than its own by more than this, in cosine.
        random_state: a seed makes the result the same every time on a CPU.
        device: where to compute, "cpu" (None) or such as "cuda".
        chunk_size: number of points in a chunk; None fits it to the cache or the GPU. Results depend on it only in
            ties within rounding.
        scout_size: with many more points than this, starts are tried on a sample of this size, and the best continue
            to a fixed point on all points. "auto" suits the number of clusters, None runs every start on all points.

    Attributes: `cluster_centers_` of unit length, `labels_`, `inertia_` (the sum of weight · (1 − cosine)), `n_iter_`.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_init: int = 10,
        init: str | Array = "k-means++",
        max_iter: int = MAX_ITERATIONS,
        tol: float = TOLERANCE,
        random_state: int | np.random.RandomState | None = None,
        device: str | torch.device | None = None,
        chunk_size: int | None = None,
        scout_size: int | Literal["auto"] | None = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.device = device
        self.chunk_size = chunk_size
        self.scout_size = scout_size

    def fit(self, X: Array, y: object = None, sample_weight: Array | None = None) -> Self:
        """Find the clusters of X, a table of N points; y is ignored."""
        data = self._tensor(X, reset=True)
        clustering = self._cluster(data, _weights(sample_weight, len(data)))
        if clustering.repeated:
            distinct = self.n_clusters - clustering.repeated
            warnings.warn(
                f"SphericalKMeans: only {distinct} of {self.n_clusters} clusters differ in direction and the others "
                f"repeat them, because there are too few distinct points: lower n_clusters to {distinct}",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.cluster_centers_ = clustering.centres.cpu().numpy()
        self.labels_ = clustering.labels.cpu().numpy().astype(np.int32)
        self.inertia_ = clustering.inertia
        self.n_iter_ = clustering.iterations
        self._n_features_out = len(self.cluster_centers_)
        return self

    def fit_predict(self, X: Array, y: object = None, sample_weight: Array | None = None) -> Int[np.ndarray, " N"]:
        """Find the clusters of X and return each point's."""
        labels: Array = self.fit(X, sample_weight=sample_weight).labels_
        return labels

    def predict(self, X: Array) -> Int[np.ndarray, " N"]:
        """Return the number of each point's nearest centre."""
        points, centres = self._new_points(X)
        labels = np.empty(len(points), dtype=np.int32)
        for span in points.spans(len(centres)):
            labels[span] = nearest(dot_products(points.rows(span), centres)).cpu().numpy()
        return labels

    def transform(self, X: Array) -> Float[np.ndarray, "N K"]:
        """Return each point's distance, 1 − cosine, to every centre."""
        points, centres = self._new_points(X)
        distances = np.empty((len(points), len(centres)), dtype=self.cluster_centers_.dtype)
        for span in points.spans(len(centres)):
            distances[span] = (1 - dot_products(points.rows(span), centres)).cpu().numpy()
        return distances

    def fit_transform(self, X: Array, y: object = None, sample_weight: Array | None = None) -> Array:
        """Find the clusters of X and return each point's distance to every centre."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: Array, y: object = None, sample_weight: Array | None = None) -> float:
        """Return minus the sum of the points' weight · (1 − cosine) to their nearest centres."""
        points, centres = self._new_points(X)
        weights = _weights(sample_weight, len(points))
        total = 0.0
        for span in points.spans(len(centres)):
            distances = 1 - dot_products(points.rows(span), centres).amax(dim=1).double().cpu()
            total -= float((distances if weights is None else distances * weights[span]).sum())
        return total

    def __sklearn_tags__(self) -> Tags:
        """Declare that the dtype of the input is preserved."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _cluster(self, data: Tensor, weights: Tensor | None) -> Clustering:
        previous, restarts, seeding = None, self.n_init, "k-means++"
        if isinstance(self.init, str):
            if self.init not in ("k-means++", "random"):
                raise InputError(f"init is {self.init!r}: choose 'k-means++', 'random' or an array of first centres")
            seeding = self.init
        else:
            previous, restarts = torch.from_numpy(np.array(self.init, dtype=np.float64)), 0
        generator = torch.Generator().manual_seed(int(check_random_state(self.random_state).randint(2**31 - 1)))
        return spherical_kmeans(
            data,
            self.n_clusters,
            restarts,
            generator,
            previous=previous,
            weights=weights,
            seeding=seeding,  # type: ignore[arg-type]  # one of the two, checked above
            max_iter=self.max_iter,
            tol=self.tol,
            chunk_size=self.chunk_size,
            scout_size=self.scout_size,
        )

    def _new_points(self, X: Array) -> tuple[Points, Tensor]:
        """Return new points and the centres, in the centres' precision."""
        check_is_fitted(self)
        data = self._tensor(X, reset=False)
        points = prepare(data, None, self.chunk_size, sharded=False)
        return points, torch.from_numpy(self.cluster_centers_).to(points.device, points.dtype)

    def _tensor(self, X: Array, reset: bool) -> Tensor:
        """Return X as a tensor that shares its memory; its values are checked a chunk at a time, on first use."""
        table: Array = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
        if not table.dtype.isnative or table.dtype.itemsize > 8 or min(table.strides) < 0:
            table = np.ascontiguousarray(table, dtype=np.float64)  # torch has no such dtype or strides
        with warnings.catch_warnings():  # torch warns of read-only arrays; nothing here writes to the data
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            data = torch.from_numpy(table)
        return data if self.device is None else data.to(self.device)


def _weights(sample_weight: Array | None, rows: int) -> Tensor | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(rows, float(weights))
    return torch.from_numpy(weights)
