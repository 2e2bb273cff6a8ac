"""What a method is made of: the parts of its network, and the stages that train them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from torch import Tensor

from propos.errors import InputError
from propos.methods.preparations import Preparation
from propos.networks import EVERY_PART, PartName, Parts
from propos.objectives import Objective
from propos.outputs import Outputs


@dataclass(frozen=True)
class Term:
    """One objective in the sum, its weight, and the epochs of its stage in which it counts."""

    name: str
    objective: Objective
    weight: float = 1.0
    starts: int = 0
    ends: int | None = None

    def counts_at(self, epoch: int) -> bool:
        """Return whether it takes part in an epoch of its stage."""
        return bool(self.weight) and self.starts <= epoch and (self.ends is None or epoch < self.ends)

    @property
    def by_head(self) -> Callable[[Outputs, Tensor], Tensor] | None:
        """The objective's loss for each of several cluster heads, where it has one; their sum is the loss."""
        return getattr(self.objective, "by_head", None)

    @property
    def reads_clusters(self) -> bool:
        """Whether it needs to know the images' clusters; then images without one take no part in it."""
        return bool(getattr(self.objective, "reads_clusters", False))

    @property
    def reads_prototypes(self) -> bool:
        """Whether it needs to know where clusters lie; images without one take part all the same."""
        return bool(getattr(self.objective, "reads_prototypes", False))

    @property
    def reads_features(self) -> bool:
        """Whether it needs the backbone's features of the batch."""
        return bool(getattr(self.objective, "reads_features", False))


@dataclass(frozen=True)
class QueueSpec:
    """How many earlier target embeddings are kept, and whether the queue starts full of random unit vectors."""

    size: int
    random_start: bool = False


@dataclass(frozen=True)
class BankSpec:
    """An embedding of every image is kept, which each step moves by a share of 1 − momentum."""

    momentum: float


@dataclass(frozen=True)
class FurtherClusterings:
    """Numbers of clusters that the E-step finds as well, from an epoch on, and the temperature of their tightness."""

    clusters: tuple[int, ...]
    starts: int
    temperature: float
    setting: str = "pcl.clusters"  # what says how many
    at_most_half: bool = False  # never more than one for two images
    whitened: bool = False  # found in embeddings without correlations, anew every time
    balanced: bool = False  # every cluster of the first is drawn from as often

    def numbers(self, images: int) -> tuple[int, ...]:
        """Return how many clusters are found among so many images."""
        return tuple(min(each, max(2, images // 2)) if self.at_most_half else each for each in self.clusters)


@dataclass(frozen=True)
class Pairing:
    """What the two views of a step are of, and how each is made.

    The second view is of the image itself, or of one of its neighbours, drawn anew in every step (the stage then opens
    with `Neighbours`). A random view is augmented as the settings say, a strong one is changed more, a plain one is the
    whole image. Where a stage is fed features in place of images (it opens with `Features`), there are no views: they
    are what is paired.
    """

    partner: Literal["itself", "neighbour"] = "itself"
    first: Literal["random", "strong", "plain"] = "random"
    second: Literal["random", "strong", "plain"] = "random"
    of: Literal["images", "features"] = "images"
    settled: bool = False  # the first view passes as for a prediction, without a gradient
    again: Literal["random", "strong", "plain"] | None = None  # one more view of the image itself,
    again_for: Literal["cluster heads", "projector"] = "cluster heads"  # and who reads it


@dataclass(frozen=True)
class Stage:
    """A stretch of training: what learns, from which views, by which terms, for how long, and what then answers."""

    name: str = "train"
    terms: tuple[Term, ...] = ()
    share: float = 1.0  # of the run's epochs, in proportion to the other stages'
    changes: Mapping[str, Any] = field(default_factory=dict)  # to the settings under `train`
    views: Mapping[str, Any] = field(default_factory=dict)  # the same under `views`: of its random and strong ones
    trains: tuple[PartName, ...] = EVERY_PART  # the other parts are frozen
    pairs: Pairing = Pairing()
    opens_with: tuple[Preparation, ...] = ()  # computed of all images when the stage opens
    refreshes: tuple[Preparation, ...] = ()  # computed of all images then, and anew before later epochs,
    refresh_every: int = 1  # so many apart
    answer: Literal["k-means", "head"] = "k-means"  # what says where an image belongs
    predictor_rate: float = 1.0  # the predictor's learning rate over everyone else's
    predictor_constant: bool = False  # whether the predictor's rate stays at its peak
    cluster_head_rate: float = 1.0  # the same of the cluster heads
    cluster_head_constant: bool = False
    noise: float = 0.0  # σ of the noise on projections before the predictor
    noise_starts: int = 0
    queue: QueueSpec | None = None
    bank: BankSpec | None = None
    further: FurtherClusterings | None = None
    resets: tuple[PartName, ...] = ()  # parts that begin anew after every E-step
    begins_at_clusters: bool = False  # whether the cluster head's prototypes begin at those of k-means as it opens
    late: tuple[PartName, ...] = ()  # parts that learn from the stage's second epoch on
    balanced: bool = False  # whether every cluster is drawn from as often

    def __post_init__(self) -> None:
        known = {preparation.name for preparation in self.preparations}
        assert self.share > 0, f"stage {self.name}: its share must be above 0"
        assert "epochs" not in self.changes, f"stage {self.name}: its epochs follow from its share"
        assert "size" not in self.views, f"stage {self.name}: images have one size in all stages"
        assert self.pairs.partner != "neighbour" or "neighbours" in known, f"stage {self.name}: opens without them"
        assert self.pairs.of != "features" or "features" in known, f"stage {self.name}: opens without features"

    def refreshed_at(self, epoch: int) -> bool:
        """Return whether it computes anew before an epoch of its own; the first has what it opened with."""
        return bool(self.refreshes) and epoch > 0 and epoch % self.refresh_every == 0

    @property
    def preparations(self) -> tuple[Preparation, ...]:
        """All that is computed of all images."""
        return *self.opens_with, *self.refreshes

    @property
    def reads_features(self) -> bool:
        """Whether a term needs the backbone's features of the batch."""
        return any(term.reads_features for term in self.terms)

    @property
    def clusters_needed(self) -> int | None:
        """The epoch of the stage at which it first needs clusters of the images; None if it never does."""
        readers = [term for term in self.terms if term.reads_clusters or term.reads_prototypes]
        starts = [term.starts for term in readers if term.weight]
        starts += [] if self.further is None else [self.further.starts]
        starts += [0] if self.balanced else []
        return min(starts, default=None)


@dataclass(frozen=True)
class Method:
    """What is optimised and how; the training step reads it. Without terms there is nothing to train."""

    parts: Parts
    stages: tuple[Stage, ...] = (Stage(),)
    embeds: Literal["target", "online"] = "target"

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of all stages."""
        return tuple(term for stage in self.stages for term in stage.terms)

    @property
    def answer(self) -> Literal["k-means", "head"]:
        """What gives the run's answer: that of the last stage."""
        return self.stages[-1].answer

    def spans(self, epochs: int) -> tuple[range, ...]:
        """Deal the epochs of a run out to the stages by their shares, at least one to each."""
        if epochs < len(self.stages):
            raise InputError(f"train.epochs = {epochs}: the method has {len(self.stages)} stages: give each an epoch")
        whole = sum(stage.share for stage in self.stages)
        bounds, done = [0], 0.0
        for place, stage in enumerate(self.stages):
            done += stage.share
            left = len(self.stages) - place - 1
            bounds.append(min(max(round(epochs * done / whole), bounds[-1] + 1), epochs - left))
        return tuple(range(start, stop) for start, stop in pairwise(bounds))

    def clusters_needed(self, epochs: int) -> int:
        """Return the epoch at which training first needs clusters: the end, where it never does."""
        if not self.terms:
            return 0
        firsts = (
            span.start + stage.clusters_needed
            for stage, span in zip(self.stages, self.spans(epochs), strict=True)
            if stage.clusters_needed is not None and stage.clusters_needed < len(span)
        )
        return min(firsts, default=epochs)
