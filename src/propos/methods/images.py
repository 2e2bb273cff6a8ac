"""All images of a run, as a method sees them between steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from jaxtyping import Float, Int
from torch import Tensor


class AllImages(Protocol):
    """All images, when a stage computes tables of them."""

    local: slice  # this process's share

    def apply(self, function: Callable[[Tensor], Tensor]) -> Float[Tensor, "N ..."]:
        """Return a function's outputs for the plain views of all images, in eval mode, on every process.

        The rows of images that corrections leave out are zero.
        """

    def gather(self, rows: Tensor) -> Tensor:
        """Return all processes' rows of a table of which each computed its share."""

    def prototypes(self) -> Float[Tensor, "K D"]:
        """Cluster the present embeddings by k-means and return the prototypes."""


class Clustered(Protocol):
    """The embeddings that an E-step has just clustered, for methods that want further clusterings of them."""

    points: Float[Tensor, "p D"]  # unit vectors of this process's images
    sharded: bool  # whether other processes hold further points

    def kmeans(
        self, clusters: int, number: int, points: Float[Tensor, "p D"], previous: Float[Tensor, "M D"] | None
    ) -> tuple[Int[Tensor, " p"], Float[Tensor, "M D"]]:
        """Find further clusters (`number` names the clustering); return this process's labels and the centres."""

    def gather_labels(self, labels: Int[Tensor, " p"]) -> Int[Tensor, " N"]:
        """Return the labels of all images on the device; -1 for those that corrections leave out."""
