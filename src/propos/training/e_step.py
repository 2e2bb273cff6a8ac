"""The E-step: embed all images, cluster them by k-means or the cluster head, keep the clusters' numbers stable."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering import (
    are_uneven,
    choose_clusters,
    churn,
    hold,
    spherical_kmeans,
    stable_numbers,
    starting_sample,
)
from propos.common.errors import RunFailed
from propos.data import Source
from propos.distributed import any_process, gather_rows, share, sum_over_processes, world_size
from propos.methods.seeds import generator
from propos.training.corrections import Corrections, LocalCorrections
from propos.training.embedding import collect, embed, length, method_output_batches
from propos.training.learner import Learner
from propos.training.pinned import pin_images

CHECKED_ROWS = 8192  # embeddings that are checked for NaN at a time: a check of all takes more memory than they do


@dataclass(frozen=True)
class Partition:
    """A label for each image and the prototypes; before the first E-step labels of -1 and no prototypes."""

    labels: Int[Tensor, " N"]  # -1: not known yet
    prototypes: Float[Tensor, "K D"]


def unassigned(images: int, device: torch.device) -> Partition:
    """Return a partition in which no image has a cluster yet."""
    return Partition(torch.full((images,), -1, device=device), torch.zeros(0, device=device))


@dataclass(frozen=True)
class Assignment:
    """The clusters that an E-step found, and the embeddings that it clustered."""

    labels: Int[Tensor, " N"]  # -1: left out by corrections
    prototypes: Float[Tensor, "K D"]
    embeddings: Float[Tensor, "n D"]  # of this process's share of the images
    churn: float | None  # the share of images that changed cluster; None the first time
    confidence: Float[Tensor, " n"] | None = None  # the cluster head's, where it decides
    together: float | None = None  # the share of nearest neighbours in the same cluster, where nothing is trained

    def partition(self) -> Partition:
        """Return the labels and prototypes that the next E-step starts from."""
        return Partition(self.labels, self.prototypes)


@dataclass
class EmbeddedImages:
    """The embeddings that an E-step clustered, for a method's further clusterings (`methods.Clustered`)."""

    corrections: LocalCorrections
    points: Float[Tensor, "p D"]
    device: torch.device
    seed: int
    epoch: int
    sharded: bool

    def kmeans(
        self, clusters: int, number: int, points: Float[Tensor, "p D"], previous: Float[Tensor, "M D"] | None
    ) -> tuple[Int[Tensor, " p"], Float[Tensor, "M D"]]:
        """Find further clusters, from one start and the previous centres."""
        draw = generator(self.seed, "grouping", self.epoch, number)
        start = None if previous is None else previous.to(points.device)
        found = spherical_kmeans(points, clusters, 1, draw, previous=start, sharded=self.sharded)
        return found.labels, found.centres

    def gather_labels(self, labels: Int[Tensor, " p"]) -> Int[Tensor, " N"]:
        """Return the labels of all images on the device."""
        return self.corrections.gather_labels(labels).to(self.device)


def embedded_images(learner: Learner, found: Assignment, epoch: int, corrections: Corrections | None) -> EmbeddedImages:
    """Return an E-step's embeddings for a method's further clusterings."""
    points = _for_kmeans(found.embeddings)
    local = LocalCorrections.of(corrections, learner.schedule.images, points.device)
    seed, sharded = learner.config.seed, world_size() > 1
    return EmbeddedImages(local, local.select(points), learner.device, seed, epoch, sharded)


def _for_kmeans(embeddings: Float[Tensor, "n D"]) -> Float[Tensor, "n D"]:
    """Return embeddings on a device with double precision, which k-means needs and MPS lacks."""
    return embeddings.cpu() if embeddings.device.type == "mps" else embeddings


def e_step(
    learner: Learner,
    source: Source,
    epoch: int,
    previous: Partition | None,
    embeddings: Float[Tensor, "n D"] | None = None,
    corrections: Corrections | None = None,
) -> Assignment:
    """Assign every image to a cluster, by the embeddings given or else by the network's present ones.

    Each process embeds its share of the images; all find the same clusters and end with the labels of every image.
    The previous prototypes are one more start for k-means, and the previous labels give the clusters their numbers.
    With corrections, the earlier run's clusters are the only start, and fixed images stay in their clusters.
    """
    if learner.stage.decides == "head":
        return _by_head(learner, source, epoch, _found(previous), corrections)
    if embeddings is None:
        return cluster_current_embeddings(learner, source, epoch, previous, corrections)
    return _by_kmeans(learner, _finite(embeddings, epoch), epoch, _found(previous), corrections)


def cluster_current_embeddings(
    learner: Learner,
    source: Source,
    epoch: int,
    previous: Partition | None,
    corrections: Corrections | None = None,
) -> Assignment:
    """Cluster the network's present embeddings by k-means, even where the cluster head decides."""
    return _by_kmeans(learner, current_embeddings(learner, source, epoch), epoch, _found(previous), corrections)


def _found(previous: Partition | None) -> Partition | None:
    """Return the previous partition, if it has clusters."""
    return previous if previous is not None and len(previous.prototypes) else None


def _by_kmeans(
    learner: Learner,
    embeddings: Float[Tensor, "n D"],
    epoch: int,
    previous: Partition | None,
    corrections: Corrections | None,
) -> Assignment:
    """Cluster the embeddings by k-means, with fixed images in the clusters of the corrections."""
    clusters = learner.config.clusters
    assert clusters is not None
    points = _for_kmeans(embeddings)
    local = LocalCorrections.of(corrections, learner.schedule.images, points.device)
    draw = generator(learner.config.seed, "k-means", epoch)
    start = _start(learner, points, previous, corrections is not None, draw)
    pinned = None
    if corrections is not None:
        assert start.centres is not None, "corrections refer to clusters, which exist from the start"
        pinned = local.select(pin_images(points, corrections, start.centres))
    own_labels, centres = _clusters_from(start, local.select(points), clusters, pinned, draw)
    labels, prototypes = local.gather_labels(own_labels).to(embeddings.device), centres.to(embeddings.device)
    if previous is None:
        return Assignment(labels, prototypes, embeddings, None, together=start.together)
    before = previous.labels.cpu().numpy()
    if corrections is None:  # corrections refer to clusters by number, which k-means then keeps
        numbers = torch.tensor(stable_numbers(before, labels.cpu().numpy(), clusters), device=labels.device)
        labels, prototypes = numbers[labels], prototypes[numbers.argsort()]
    return Assignment(labels, prototypes, embeddings, churn(before, labels.cpu().numpy()))


@dataclass(frozen=True)
class _Start:
    """The centres from which an E-step starts, if any; whether they are held; the number of further starts."""

    centres: Float[Tensor, "K D"] | None
    restarts: int = 0
    held: bool = False
    together: float | None = None  # as `Assignment` has it


def _clusters_from(
    start: _Start, points: Float[Tensor, "p D"], clusters: int, pinned: Int[Tensor, " p"] | None, draw: torch.Generator
) -> tuple[Int[Tensor, " p"], Float[Tensor, "K D"]]:
    """Return the labels of this process's included images and the prototypes: of k-means, or of clusters held."""
    sharded = world_size() > 1
    if start.held:
        assert start.centres is not None
        return hold(points, start.centres, pinned, sharded)
    found = spherical_kmeans(
        points, clusters, start.restarts, draw, previous=start.centres, fixed=pinned, sharded=sharded
    )
    return found.labels, found.centres


def _start(
    learner: Learner,
    points: Float[Tensor, "n D"],
    previous: Partition | None,
    corrected: bool,
    draw: torch.Generator,
) -> _Start:
    """Return what the clusters start from."""
    estep, clusters = learner.config.estep, learner.config.clusters
    assert clusters is not None
    averages = estep.averaged and (not learner.stages or learner.method.good_initial_embeddings)
    frozen = estep.averaged and not learner.stages
    start = None if previous is None else previous.prototypes.to(points)
    if start is not None and (corrected or len(start) == clusters):
        further = 0 if corrected or averages else estep.restarts  # another start could end in clusters that mix classes
        return _Start(start, further, held=bool(frozen) and are_uneven(points, start, world_size() > 1))
    if not averages:
        return _Start(None, estep.restarts)
    images = learner.schedule.images
    sample = gather_rows(points, starting_sample(images, clusters, draw).to(points.device), images)
    chosen = choose_clusters(sample, clusters, estep.averaged, estep.restarts, draw)
    return _Start(chosen.centres, held=chosen.held, together=chosen.together if frozen else None)


def current_embeddings(learner: Learner, source: Source, epoch: int) -> Float[Tensor, "n D"]:
    """Return the embeddings of this process's share of the images by the present network."""
    return _finite(embed(learner.method.embedder, source, learner.config), epoch)


def _finite(embeddings: Float[Tensor, "n D"], epoch: int) -> Float[Tensor, "n D"]:
    finite = torch.stack([torch.isfinite(rows).all() for rows in embeddings.split(CHECKED_ROWS)]).all()
    if any_process(not finite)[0]:
        lower = "start a new run at a lower rate (--set train.lr=…)"
        raise RunFailed(f"the embeddings contain NaN at the start of epoch {epoch}: {lower}", "nan")
    return embeddings


def _by_head(
    learner: Learner, source: Source, epoch: int, previous: Partition | None, corrections: Corrections | None
) -> Assignment:
    """Take each image's cluster from the cluster head; a prototype is the normalised mean of its cluster's embeddings.

    The prototype of an empty cluster is the mean of all images, weighted by the head's probabilities.
    """
    images = share(len(source))
    local = LocalCorrections.of(corrections, len(source), learner.method.online.device)
    sums = _HeadSums(local)
    outputs = method_output_batches(learner.method, source, learner.config, images)
    embeddings, clusters, confidence = collect((sums.add(batch, made) for batch, _, made in outputs), length(images))
    _finite(embeddings, epoch)
    labels = local.gather_labels(local.select(clusters))
    moved = None if previous is None else churn(previous.labels.cpu().numpy(), labels.cpu().numpy())
    return Assignment(labels, sums.prototypes(), embeddings, moved, confidence=confidence)


class _HeadSums:
    """Sums of the embeddings by cluster, added a batch at a time: images × clusters are never in memory at once."""

    def __init__(self, local: LocalCorrections) -> None:
        self.local, self.rows = local, 0
        self.hard: Float[Tensor, "K D"] | None = None  # of the images of each cluster
        self.soft: Float[Tensor, "K D"] | None = None  # of all images, weighted by the head's probabilities
        self.sizes: Float[Tensor, " K"] | None = None  # numbers of included images

    def add(
        self, embeddings: Float[Tensor, "B D"], assignments: Float[Tensor, "B K"] | None
    ) -> tuple[Float[Tensor, "B D"], Int[Tensor, " B"], Float[Tensor, " B"]]:
        """Add the next images; return their embeddings, clusters and the head's confidence in these."""
        assert assignments is not None
        span = slice(self.rows, self.rows + len(embeddings))
        self.rows = span.stop
        clusters = self.local.apply(assignments.argmax(dim=1), span)
        included = self.local.included[span].to(embeddings.dtype)
        sizes = embeddings.new_zeros(assignments.shape[1]).index_add_(0, clusters, included)
        # A sum of its own for each batch: adding a million rows to one sum loses digits.
        hard = embeddings.new_zeros((len(sizes), embeddings.shape[1]))
        hard.index_add_(0, clusters, embeddings * included[:, None])
        soft = assignments.T @ embeddings
        self.hard = hard if self.hard is None else self.hard + hard
        self.soft = soft if self.soft is None else self.soft + soft
        self.sizes = sizes if self.sizes is None else self.sizes + sizes
        return embeddings, clusters, assignments.gather(1, clusters[:, None])[:, 0]

    def prototypes(self) -> Float[Tensor, "K D"]:
        """Return the normalised sums of all processes."""
        assert self.hard is not None
        assert self.soft is not None
        assert self.sizes is not None
        hard, soft = sum_over_processes(torch.stack([self.hard, self.soft])).unbind()
        empty = sum_over_processes(self.sizes) == 0
        return F.normalize(torch.where(empty[:, None], soft, hard), dim=1)
