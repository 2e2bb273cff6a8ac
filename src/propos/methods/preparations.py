"""What a stage computes of all images when it opens: one row an image, kept with the state of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from propos.clustering import nearest_neighbours


@dataclass(frozen=True)
class Seen:
    """What the network as it is makes of all images; `mine` are this process's rows of it."""

    embeddings: Float[Tensor, "N D"]  # unit vectors
    features: Float[Tensor, "N F"]  # the backbone's, of the network that embeds
    assignments: Float[Tensor, "N H K"] | None  # every cluster head's, where there are any
    chosen: int  # of the heads, the one that answers
    mine: slice


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
class Confident:
    """Whether each image is among the surest of the cluster that the head puts it into."""

    share: float
    name: str = "confident"

    def __call__(self, seen: Seen) -> Bool[Tensor, " n"]:
        """Return the rows of this process's images."""
        assert seen.assignments is not None
        sureness, cluster = seen.assignments[:, seen.chosen].max(dim=1)
        chosen = torch.zeros_like(cluster, dtype=torch.bool)
        for number in range(seen.assignments.shape[2]):
            members = (cluster == number).nonzero()[:, 0]
            surest = sureness[members].argsort(descending=True, stable=True)
            chosen[members[surest[: round(self.share * len(members))]]] = True
        return chosen[seen.mine]
