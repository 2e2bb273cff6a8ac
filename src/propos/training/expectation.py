"""The E-step: embed all images, cluster them or ask the cluster head, keep the clusters' numbers stable."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering import (
    churn,
    concentrations,
    spherical_kmeans,
    stable_numbers,
    start_from_averages,
    whitened,
)
from propos.data import Source
from propos.distributed import any_process, gather, share, sum_over_processes, world_size
from propos.errors import RunFailed
from propos.outputs import Grouping
from propos.training.corrections import Corrections, TakingPart
from propos.training.embedding import embed, see_batches
from propos.training.learner import Learner
from propos.training.seeds import generator
from propos.training.staying import staying


@dataclass(frozen=True)
class Partition:
    """One label an image, and the prototypes behind them; before the first E-step labels of −1 and no prototypes."""

    labels: Int[Tensor, " N"]  # -1 where none is known yet
    prototypes: Float[Tensor, "K D"]
    groupings: tuple[Grouping, ...] = ()  # further clusterings that the method's terms want

    def start(self, clusters: int) -> Float[Tensor, "K D"] | None:
        """Return the prototypes from which to find so many clusters; none when they are fewer or more."""
        return self.prototypes if len(self.prototypes) == clusters else None


def unassigned(images: int, device: torch.device) -> Partition:
    """Return a partition in which no image has a cluster yet."""
    return Partition(torch.full((images,), -1, device=device), torch.zeros(0, device=device))


@dataclass(frozen=True)
class Assignment:
    """What an E-step found, and the embeddings it found it in."""

    labels: Int[Tensor, " N"]  # −1 of images that take no part
    prototypes: Float[Tensor, "K D"]
    embeddings: Float[Tensor, "n D"]  # of this process's share of the images
    churn: float | None  # the share of images that changed cluster; None the first time
    groupings: tuple[Grouping, ...] = ()
    confidence: Float[Tensor, " n"] | None = None  # the cluster head's, where it gives the answer

    def partition(self) -> Partition:
        """Return what the next E-step starts from."""
        return Partition(self.labels, self.prototypes, self.groupings)


def expectation(
    learner: Learner,
    source: Source,
    epoch: int,
    previous: Partition | None,
    streamed: Float[Tensor, "N D"] | None = None,
    corrections: Corrections | None = None,
) -> Assignment:
    """Assign every image to a cluster of the network's present embeddings, or of those that training left.

    Each process embeds its share of the images; all find the same clusters and end with the labels of every image.
    The previous prototypes are one more start for k-means, and the previous labels give the clusters their numbers.
    Where people corrected an earlier run, its clusters are the only start, and images stay where they were put.
    """
    if learner.stage.answer == "head":
        return _by_head(learner, source, epoch, _found(previous), corrections)
    if streamed is None:
        return clusters_now(learner, source, epoch, previous, corrections)
    return _by_kmeans(learner, _finite(streamed, epoch), epoch, _found(previous), corrections)


def clusters_now(
    learner: Learner,
    source: Source,
    epoch: int,
    previous: Partition | None,
    corrections: Corrections | None = None,
) -> Assignment:
    """Cluster the network's present embeddings by k-means, whatever answers in the stage."""
    return _by_kmeans(learner, embeddings_now(learner, source, epoch), epoch, _found(previous), corrections)


def _found(previous: Partition | None) -> Partition | None:
    """Return the partition before, if it has clusters."""
    return previous if previous is not None and len(previous.prototypes) else None


def _by_kmeans(
    learner: Learner,
    embeddings: Float[Tensor, "n D"],
    epoch: int,
    previous: Partition | None,
    corrections: Corrections | None,
) -> Assignment:
    """Cluster the embeddings; where people corrected the clusters, with images where they put them."""
    clusters = learner.config.clusters
    assert clusters is not None
    # K-means sums in double precision, which MPS has not.
    points = embeddings.cpu() if embeddings.device.type == "mps" else embeddings
    part = TakingPart.of(corrections, learner.schedule.images, points.device)
    draw = generator(learner.config.seed, "k-means", epoch)
    start, restarts = _start(learner, points, previous, corrections is not None, draw)
    held = None
    if corrections is not None:
        assert start is not None, "corrections speak of clusters, which are there from the start"
        held = part.rows(staying(points, corrections, start))
    found = spherical_kmeans(
        part.rows(points), clusters, restarts, draw, previous=start, fixed=held, sharded=world_size() > 1
    )
    groupings = _groupings(learner, part, points, epoch, previous)
    labels, prototypes = part.labels_of_all(found.labels).to(embeddings.device), found.centres.to(embeddings.device)
    if previous is None:
        return Assignment(labels, prototypes, embeddings, None, groupings)
    before = previous.labels.cpu().numpy()
    if corrections is None:  # they speak of clusters by number, which k-means then keeps
        numbers = torch.tensor(stable_numbers(before, labels.cpu().numpy(), clusters), device=labels.device)
        labels, prototypes = numbers[labels], prototypes[numbers.argsort()]
    return Assignment(labels, prototypes, embeddings, churn(before, labels.cpu().numpy()), groupings)


def _start(
    learner: Learner,
    points: Float[Tensor, "n D"],
    previous: Partition | None,
    corrected: bool,
    draw: torch.Generator,
) -> tuple[Float[Tensor, "K D"] | None, int]:
    """Return the centres that k-means starts from, if any, and how many other starts it tries."""
    config = learner.config
    assert config.clusters is not None
    if corrected:
        return None if previous is None else previous.prototypes.to(points.device), 0
    start = None if previous is None else previous.start(config.clusters)
    if not config.estep.averaged or (learner.method.terms and not learner.method.parts.begins_clustered):
        return start, config.estep.restarts
    if start is None:
        everyone = gather(points, learner.schedule.images)
        start = start_from_averages(everyone, config.clusters, config.estep.averaged, config.estep.restarts, draw)
    return start, 0  # another start could end in clusters that straddle kinds


def embeddings_now(learner: Learner, source: Source, epoch: int) -> Float[Tensor, "n D"]:
    """Return the embeddings of this process's share of the images by the network as it is."""
    encoder = learner.network.encoder(learner.method.embeds)
    return _finite(embed(encoder, source, learner.config), epoch)


def _finite(embeddings: Float[Tensor, "n D"], epoch: int) -> Float[Tensor, "n D"]:
    if any_process(not torch.isfinite(embeddings).all())[0]:
        lower = "start a new run at a lower rate (--set train.lr=…)"
        raise RunFailed(f"the embeddings hold NaN at the start of epoch {epoch}: {lower}", "nan")
    return embeddings


def _by_head(
    learner: Learner, source: Source, epoch: int, previous: Partition | None, corrections: Corrections | None
) -> Assignment:
    """Take each image's cluster from the cluster head; a prototype is the normalised mean of its cluster's embeddings.

    A cluster that no image is in has the mean of all images, weighed by how much the head would put them there.
    """
    mine = see_batches(learner.network, learner.method.embeds, source, learner.config, share(len(source)))
    batches = [(embeddings, assignments) for embeddings, _, assignments in mine]
    embeddings = _finite(torch.cat([batch for batch, _ in batches]), epoch)
    assignments = torch.cat([batch for _, batch in batches if batch is not None])
    part = TakingPart.of(corrections, len(source), assignments.device)
    clusters = part.put(assignments.argmax(dim=1))
    confidence = assignments.gather(1, clusters[:, None])[:, 0]
    labels = part.labels_of_all(part.rows(clusters))
    members = (F.one_hot(clusters, assignments.shape[1]) * part.mask[:, None]).to(embeddings.dtype)
    hard, soft = sum_over_processes(torch.stack([members.T @ embeddings, assignments.T @ embeddings])).unbind()
    empty = sum_over_processes(members.sum(dim=0)) == 0
    prototypes = F.normalize(torch.where(empty[:, None], soft, hard), dim=1)
    moved = None if previous is None else churn(previous.labels.cpu().numpy(), labels.cpu().numpy())
    return Assignment(labels, prototypes, embeddings, moved, confidence=confidence)


def _groupings(
    learner: Learner, part: TakingPart, points: Float[Tensor, "n D"], epoch: int, previous: Partition | None
) -> tuple[Grouping, ...]:
    """Cluster images that take part into each further number of clusters, from one start and the last."""
    further = learner.stage.further
    if further is None or learner.since(epoch) < further.starts or epoch not in learner.epochs:
        return ()
    before = () if previous is None else previous.groupings
    points = part.rows(points)
    if further.whitened:
        points, before = whitened(points, sharded=world_size() > 1), ()  # its axes are others every time
    groupings = []
    for place, clusters in enumerate(further.numbers(learner.schedule.images)):
        draw = generator(learner.config.seed, "grouping", epoch, place)
        last = before[place].prototypes.to(points.device) if before else None
        each = spherical_kmeans(points, clusters, 1, draw, previous=last, sharded=world_size() > 1)
        tight = concentrations(points, each.labels, each.centres, further.temperature, sharded=world_size() > 1)
        labels = part.labels_of_all(each.labels)
        groupings.append(Grouping(*(tensor.to(learner.device) for tensor in (labels, each.centres, tight))))
    return tuple(groupings)
