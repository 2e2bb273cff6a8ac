"""Suggestion of the number of clusters, by the silhouette and the stability of clusterings.

The choice of the two scores, and where they fail, is in docs/suggest-k.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.kmeans import assign, spherical_kmeans
from propos.clustering.silhouette import cosine_silhouette
from propos.common.errors import InputError

POINTS = 4096  # in the sample, or more if the largest number of clusters needs them
POINTS_A_CLUSTER = 64
SPLITS = 3  # pairs of disjoint halves
RESTARTS = 4  # of k-means on each half
EVERY_NUMBER = 40  # numbers tried in longer ranges, in geometric progression
WEAK = 0.15  # a silhouette below this: clusters overlap
FLEETING = 0.6  # a stability below this: other images give other clusters
AS_GOOD = 0.97  # of the largest product: a smaller difference is within the variation of random halves


@dataclass(frozen=True)
class Suggestion:
    """A number of clusters, the scores of all that were tried, and why it was chosen, in two lines."""

    tried: tuple[int, ...]
    scores: Mapping[str, tuple[float, ...]]  # by name, one for each number
    chosen: int
    why: str

    def plain(self) -> dict[str, Any]:
        """Return it as plain values, as a run folder's suggestion.json holds it."""
        scores = {name: list(values) for name, values in self.scores.items()}
        return {"range": list(self.tried), "scores": scores, "chosen": self.chosen, "why": self.why}


def suggest_clusters(
    embeddings: Float[Tensor, "N D"],
    lowest: int,
    highest: int,
    generator: torch.Generator,
    before_each: Callable[[int], None] = lambda clusters: None,
) -> Suggestion:
    """Choose the least number of clusters whose product of silhouette and stability is as good as the largest.

    Numbers above the root of twice the images, a rule of thumb, are tried but not chosen unless all of the range are.
    `before_each` is called with every number before it is tried, to report progress or to stop.
    """
    points = points_to_cluster(embeddings, lowest, highest, generator)
    tried = numbers_to_try(lowest, highest)
    measured: list[tuple[float, float]] = []
    for clusters in tried:
        before_each(clusters)
        measured.append(_scores(points, clusters, generator))
    silhouettes, stabilities = zip(*measured, strict=True)
    # With more clusters, halves have too few images of each, and near duplicates look like clusters.
    chosen_from = sum(clusters**2 <= 2 * len(points) for clusters in tried) or len(tried)
    order = _best_first([max(0.0, apart) * max(0.0, alike) for apart, alike in measured[:chosen_from]])
    why = _why(tried, chosen_from, order, silhouettes[order[0]], stabilities[order[0]])
    return Suggestion(tried, {"silhouette": silhouettes, "stability": stabilities}, tried[order[0]], why)


def points_to_cluster(
    embeddings: Float[Tensor, "N D"], lowest: int, highest: int, generator: torch.Generator
) -> Float[Tensor, "M D"]:
    """Return a sample of the embeddings as unit vectors; refuse a range that so few images cannot have."""
    if not 2 <= lowest <= highest <= len(embeddings) // 2:
        most = len(embeddings) // 2
        raise InputError(f"{lowest} to {highest} clusters of {len(embeddings)} images: choose from 2 to {most}")
    sample = sample_positions(len(embeddings), highest, generator)
    return F.normalize(embeddings[sample.to(embeddings.device)].float().cpu(), dim=1)


def _best_first(merits: Sequence[float]) -> list[int]:
    """Return the places of merits in ascending numbers: the first that is as good as the best, then by merit."""
    chosen = next(place for place, merit in enumerate(merits) if merit >= AS_GOOD * max(merits))
    others = sorted(range(len(merits)), key=lambda place: -merits[place])
    return [chosen, *(place for place in others if place != chosen)]


def numbers_to_try(lowest: int, highest: int) -> tuple[int, ...]:
    """Return the numbers to try: all of a short range, a geometric progression of a long one."""
    if highest - lowest < EVERY_NUMBER:
        return tuple(range(lowest, highest + 1))
    return tuple(int(number) for number in np.unique(np.geomspace(lowest, highest, EVERY_NUMBER).round()))


def sample_positions(count: int, highest: int, generator: torch.Generator) -> Int[Tensor, " M"]:
    """Return the positions of all points, or of a random sample if there are many."""
    size = max(POINTS, POINTS_A_CLUSTER * highest)
    return torch.arange(count) if count <= size else torch.randperm(count, generator=generator)[:size]


def _scores(points: Float[Tensor, "N D"], clusters: int, generator: torch.Generator) -> tuple[float, float]:
    """Return the silhouette and the stability: the ARI between clusterings of all points by k-means on two halves."""
    from sklearn.metrics import adjusted_rand_score  # imported only when needed: it takes seconds and imports pandas

    silhouettes: list[float] = []
    agreements: list[float] = []
    for _ in range(SPLITS):
        order = torch.randperm(len(points), generator=generator)
        pair = [_labels(points, half, clusters, generator) for half in order.tensor_split(2)]
        silhouettes += [cosine_silhouette(points, labels, clusters) for labels in pair]
        agreements.append(float(adjusted_rand_score(*(labels.numpy() for labels in pair))))
    return float(np.mean(silhouettes)), float(np.mean(agreements))


def _labels(
    points: Float[Tensor, "N D"], half: Int[Tensor, " H"], clusters: int, generator: torch.Generator
) -> Int[Tensor, " N"]:
    """Return the clusters of all points that k-means finds in some of them."""
    return assign(points, spherical_kmeans(points[half], clusters, RESTARTS, generator).centres)[0]


def _why(tried: Sequence[int], chosen_from: int, order: Sequence[int], silhouette: float, stability: float) -> str:
    """Return the reasons for the choice in one line, and doubts or the next best numbers in another."""
    chosen, first, last = tried[order[0]], tried[0], tried[-1]
    separated = "well separated" if silhouette >= WEAK else "hardly separated"
    stable = "stable" if stability >= FLEETING else "hardly stable"
    reason = (
        f"{chosen} clusters suggested, of {first} to {last}: {separated} (silhouette {silhouette:.2f}) "
        f"and {stable} between halves of the images (stability {stability:.2f})."
    )
    if chosen_from < len(tried):
        reason += f" So few images cannot support more than {tried[chosen_from - 1]}."
    return f"{reason}\n{' '.join(_doubts(tried, order, silhouette, stability))}"


def _doubts(tried: Sequence[int], order: Sequence[int], silhouette: float, stability: float) -> list[str]:
    chosen, first, last = tried[order[0]], tried[0], tried[-1]
    doubts: list[str] = []
    if first == last:
        return ["It is the only number that was tried."]
    if chosen == last:
        doubts.append(f"It is the largest number tried: look further with -k {chosen}..{2 * chosen}.")
    elif chosen == first and chosen > 2:
        doubts.append(f"It is the smallest number tried: look lower with -k 2..{chosen}.")
    elif chosen == first:
        doubts.append(
            f"Images that are not separated yet often give 2: if you expect more, use -k {min(5, last)}..{last}."
        )
    if silhouette < WEAK or stability < FLEETING:
        why = "overlap" if silhouette < WEAK else "depend on the sample of images"
        doubts.append(f"The evidence is weak, the clusters {why}: if you know the number, give it with -k.")
    return doubts or [f"Next best: {' and '.join(str(tried[place]) for place in order[1:3])}."]
