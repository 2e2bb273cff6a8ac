"""What a stage computes of all images when it opens: one row an image, kept with the state of the run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.clustering import nearest_neighbours

WEIGHED = 3  # the size of a neighbourhood whose images count in full
LEAST = 1e-30  # by which there is still something to divide


@dataclass(frozen=True)
class Seen:
    """What the network as it is makes of all images; `mine` are this process's rows of it."""

    embeddings: Float[Tensor, "N D"]  # unit vectors
    features: Float[Tensor, "N F"]  # the backbone's, of the network that embeds
    assignments: Float[Tensor, "N H K"] | None  # every cluster head's, where there are any
    chosen: int  # of the heads, the one that answers
    mine: slice
    tables: Mapping[str, Tensor] = field(default_factory=dict)  # what the stage has computed so far, of all images


class Preparation(Protocol):
    """A table with a row for each image, computed once; in a step, objectives find the batch's rows by its name."""

    @property
    def name(self) -> str:
        """What it is called in the state of a run and in `Outputs.prepared`."""
        ...

    def __call__(self, seen: Seen) -> Tensor:
        """Return the rows of this process's images."""
        ...


@dataclass(frozen=True)
class Neighbours:
    """The images nearest to each by the cosine of their embeddings, or of their features, nearest first.

    With `itself`, each image comes before its neighbours.
    """

    count: int
    name: str = "neighbours"
    of: Literal["embeddings", "features"] = "embeddings"
    itself: bool = False

    def __call__(self, seen: Seen) -> Int[Tensor, "n count"]:
        """Return the rows of this process's images."""
        points = seen.embeddings if self.of == "embeddings" else F.normalize(seen.features, dim=1)
        others = nearest_neighbours(points, min(self.count, len(points) - 1), seen.mine)
        if not self.itself:
            return others
        own = torch.arange(seen.mine.start, seen.mine.stop, device=others.device)
        return torch.cat([own[:, None], others], dim=1)


@dataclass(frozen=True)
class NeighbourWeights:
    """How much each of an image's neighbours counts: the less, the more images it is near to.

    √(3 / d), d the number of images that a neighbour has among its own or is one of, itself included. The stage has
    computed `Neighbours` before, with `itself`.
    """

    name: str = "neighbour weights"

    def __call__(self, seen: Seen) -> Float[Tensor, "n count"]:
        """Return the rows of this process's images."""
        table = seen.tables["neighbours"]
        weights = (WEIGHED / neighbourhoods(table)).sqrt()
        return weights[table[seen.mine]]


def neighbourhoods(table: Int[Tensor, "N count"]) -> Int[Tensor, " N"]:
    """Return with how many images each shares an edge, given each one's neighbours, itself first; itself counts."""
    own, others = table[:, 0], table[:, 1:]
    named = torch.bincount(others.flatten(), minlength=len(table))
    mutual = (others[others] == own[:, None, None]).any(dim=2).sum(dim=1)
    return 1 + others.shape[1] + named - mutual


@dataclass(frozen=True)
class Features:
    """The backbone's features of each image, for stages that freeze it and pair features in place of images."""

    name: str = "features"

    def __call__(self, seen: Seen) -> Float[Tensor, "n F"]:
        """Return the rows of this process's images."""
        return seen.features[seen.mine]


@dataclass(frozen=True)
class NearestAnswers:
    """Where every cluster head puts the image that is nearest to each by the cosine of their features."""

    name: str = "nearest answers"

    def __call__(self, seen: Seen) -> Float[Tensor, "n H K"]:
        """Return the rows of this process's images."""
        assert seen.assignments is not None
        nearest = nearest_neighbours(F.normalize(seen.features, dim=1), 1, seen.mine)[:, 0]
        return seen.assignments[nearest]


@dataclass(frozen=True)
class Sharpened:
    """Where every cluster head puts each image, surer than it says, and with no cluster the surer for being large.

    p_ik = (q_ik² / f_k) / Σ_j (q_ij² / f_j), q what a head says and f_k = Σ_i q_ik, of all images.
    """

    name: str = "sharpened"

    def __call__(self, seen: Seen) -> Float[Tensor, "n H K"]:
        """Return the rows of this process's images."""
        assert seen.assignments is not None
        mine, sizes = seen.assignments[seen.mine], seen.assignments.sum(dim=0)
        weighed = mine.square() / sizes.clamp(min=LEAST)
        return weighed / weighed.sum(dim=2, keepdim=True).clamp(min=LEAST)


@dataclass(frozen=True)
class PrototypeLabels:
    """Which images lie nearest to what each cluster head is surest of, as many for each cluster, head by head.

    The surest of a cluster, a share of its even part of the images, have a mean by their unit features; as many images
    as that part are nearest to it. An image may be among those of several clusters, or of none.
    """

    share: float
    name: str = "prototype labels"

    def __call__(self, seen: Seen) -> Bool[Tensor, "n H K"]:
        """Return the rows of this process's images."""
        assert seen.assignments is not None
        points = F.normalize(seen.features, dim=1)
        heads = [self._of_head(points, assigned) for assigned in seen.assignments.unbind(dim=1)]
        return torch.stack(heads, dim=1)[seen.mine]

    def _of_head(self, points: Float[Tensor, "N F"], assigned: Float[Tensor, "N K"]) -> Bool[Tensor, "N K"]:
        even = max(1, len(points) // assigned.shape[1])
        surest = assigned.topk(max(1, int(self.share * even)), dim=0).indices
        cosines = points @ points[surest].mean(dim=0).T
        nearest = cosines.topk(even, dim=0).indices
        return torch.zeros_like(cosines, dtype=torch.bool).scatter(0, nearest, value=True)


@dataclass(frozen=True)
class AgreedLabels:
    """Where the head puts each image, if it is sure and puts the images nearest to it there too; -1 for others.

    Of so many images, the image and those nearest to it by the cosine of their features, a share has to agree.
    """

    count: int
    share: float
    above: float
    name: str = "labels"

    def __call__(self, seen: Seen) -> Int[Tensor, " n"]:
        """Return the rows of this process's images."""
        sureness, cluster, _ = _answered(seen)
        points, mine = F.normalize(seen.features, dim=1), seen.mine
        near = nearest_neighbours(points, min(self.count, len(points)) - 1, mine)
        alike = 1 + (cluster[near] == cluster[mine, None]).sum(dim=1)
        agreed = (alike >= self.share * (1 + near.shape[1])) & (sureness[mine] > self.above)
        return torch.where(agreed, cluster[mine], -1)


@dataclass(frozen=True)
class Confident:
    """Whether each image is among the surest of the cluster that the head puts it into."""

    share: float
    name: str = "confident"

    def __call__(self, seen: Seen) -> Bool[Tensor, " n"]:
        """Return the rows of this process's images."""
        sureness, cluster, clusters = _answered(seen)
        counts = torch.bincount(cluster, minlength=clusters)
        chosen = places_in_cluster(sureness, cluster) < (self.share * counts.double()).round()[cluster]
        return chosen[seen.mine]


@dataclass(frozen=True)
class SureLabels:
    """A label for the surest images of each cluster, kept for as long as the head is sure of them; -1 for others.

    Of each cluster as many are labelled as make, over all clusters of equal size, a share of the images. An image that
    has a label keeps it, whatever the head says by now, until no assignment of it reaches `above`.
    """

    share: float
    above: float
    name: str = "labels"

    def __call__(self, seen: Seen) -> Int[Tensor, " n"]:
        """Return the rows of this process's images."""
        sureness, cluster, clusters = _answered(seen)
        most = math.ceil(self.share * len(cluster) / clusters)
        labels = torch.where(places_in_cluster(sureness, cluster) < most, cluster, -1)
        if self.name in seen.tables:
            before = seen.tables[self.name]
            labels = torch.where(before < 0, labels, before)
        return torch.where(sureness < self.above, -1, labels)[seen.mine]


def _answered(seen: Seen) -> tuple[Float[Tensor, " N"], Int[Tensor, " N"], int]:
    """Return how sure the head that answers is of each image, where it puts it, and how many clusters it has."""
    assert seen.assignments is not None
    sureness, cluster = seen.assignments[:, seen.chosen].max(dim=1)
    return sureness, cluster, seen.assignments.shape[2]


def places_in_cluster(sureness: Float[Tensor, " N"], cluster: Int[Tensor, " N"]) -> Int[Tensor, " N"]:
    """Return how many images of its cluster come before each, the surest first, and of equals those before it."""
    surest = sureness.argsort(descending=True, stable=True)
    order = surest[cluster[surest].argsort(stable=True)]  # cluster by cluster
    counts = torch.bincount(cluster)
    starts = counts.cumsum(dim=0) - counts
    counted = torch.arange(len(order), device=order.device) - starts[cluster[order]]
    return torch.empty_like(order).index_copy(0, order, counted)
