"""The number of clusters by AutoProPos's clustering supervisor (Applied Sciences 15(18), 10052, 2025).

Ten small autoencoders compress the embeddings to a few dimensions. In each, k-means with every number of clusters is
scored by the silhouette, and by how alike its clusters' silhouettes are: the divergence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering.kmeans import spherical_kmeans
from propos.clustering.silhouette import cosine_silhouettes
from propos.clustering.suggestion import Suggestion, numbers_to_try, points_to_cluster

NETWORKS = 10  # autoencoders
LATENT = 4  # their outputs; 3 to 5 in its configurations
EPOCHS, BATCH, RATE = 120, 128, 0.01
HIDDEN, DECODER = 128, (16, 32, 64, 128)
KEPT, DROPPED = 0.8, 0.4  # shares of the inputs that are seen, and of the hidden units that are dropped
SHORTLIST = 4  # numbers of the highest silhouettes, from which a network's number is chosen
AVERAGED = 5  # networks of the lowest divergence, whose numbers are averaged
RESTARTS = 4  # of k-means
SMALLEST = 1e-10

Layer = tuple[Float[Tensor, "M i o"], Float[Tensor, "M 1 o"]]


class Chosen(NamedTuple):
    """The number of clusters that one autoencoder's outputs have, and the divergence of these clusters."""

    clusters: int
    divergence: float


def suggest_by_autoencoders(
    embeddings: Float[Tensor, "N D"],
    lowest: int,
    highest: int,
    generator: torch.Generator,
    before_each: Callable[[int], None] = lambda clusters: None,
) -> Suggestion:
    """Choose the mean of the numbers that the five autoencoders with the most even clusters have.

    `before_each` is called with every number before it is tried, and between the autoencoders' epochs with the lowest.
    """
    points = points_to_cluster(embeddings, lowest, highest, generator)
    tried = numbers_to_try(lowest, highest)
    outputs = compressed(points, generator, lambda: before_each(lowest))
    silhouettes, divergences = torch.zeros(2, NETWORKS, len(tried)).unbind()
    for place, clusters in enumerate(tried):
        before_each(clusters)
        for network, latent in enumerate(outputs):
            labels = spherical_kmeans(latent, clusters, RESTARTS, generator).labels
            each = cosine_silhouettes(latent, labels, clusters)
            silhouettes[network, place], divergences[network, place] = each.mean(), divergence(each, labels)
    by_network = [choose(tried, *scores) for scores in zip(silhouettes.tolist(), divergences.tolist(), strict=True)]
    chosen = average(by_network)
    means = {"silhouette": silhouettes, "divergence": divergences}
    scores = {name: tuple(values.mean(dim=0).tolist()) for name, values in means.items()}
    found = ", ".join(str(number) for number in sorted(each.clusters for each in by_network))
    why = (
        f"{chosen} clusters suggested, of {lowest} to {highest}, by AutoProPos's rule.\nTen autoencoders have {found}."
    )
    return Suggestion(tried, scores, chosen, why)


def choose(tried: Sequence[int], silhouettes: Sequence[float], divergences: Sequence[float]) -> Chosen:
    """Return, of the numbers with the highest silhouettes, the one whose clusters diverge least."""
    shortlist = sorted(range(len(tried)), key=lambda place: -silhouettes[place])[:SHORTLIST]
    best = min(shortlist, key=lambda place: divergences[place])
    return Chosen(tried[best], divergences[best])


def average(by_network: Sequence[Chosen]) -> int:
    """Return the rounded mean of the numbers whose clusters diverge least."""
    even = sorted(by_network, key=lambda each: each.divergence)[:AVERAGED]
    return round(sum(each.clusters for each in even) / len(even))


def divergence(silhouettes: Float[Tensor, " N"], labels: Int[Tensor, " N"]) -> Tensor:
    """Return the Jensen-Shannon divergence between clusters: H(Σ_k w_k p_k) − Σ_k w_k H(p_k), w_k their shares.

    p_k are the silhouettes of cluster k from the highest down, moved to above 0, padded by zeros to the largest
    cluster's size, and divided by their sum.
    """
    moved = silhouettes + silhouettes.min().abs() + SMALLEST
    groups = [moved[labels == number].sort(descending=True).values for number in labels.unique()]
    padded = torch.nn.utils.rnn.pad_sequence(groups, batch_first=True)
    each = padded / padded.sum(dim=1, keepdim=True)
    weights = padded.new_tensor([len(group) / len(labels) for group in groups])
    between: Tensor = _entropy(weights @ each) - weights @ _entropy(each)
    return between


def _entropy(shares: Float[Tensor, "*K n"]) -> Float[Tensor, " *K"]:
    return -(shares * (shares + SMALLEST).log()).sum(dim=-1)


@torch.enable_grad()
def compressed(
    points: Float[Tensor, "N D"], generator: torch.Generator, before_each: Callable[[], None]
) -> Float[Tensor, "M N L"]:
    """Return the unit outputs of autoencoders that are trained to restore points of which a part is hidden.

    They are trained side by side; the loss is 1 − cosine.
    """
    width = points.shape[1]
    encoder = [_layer(inner, outer, generator) for inner, outer in _pairs(width, HIDDEN, LATENT)]
    decoder = [_layer(inner, outer, generator) for inner, outer in _pairs(LATENT, *DECODER, width)]
    weights = [each for layer in (*encoder, *decoder) for each in layer]
    optimiser = torch.optim.Adam(weights, lr=RATE)
    batches = -(-len(points) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=RATE, total_steps=EPOCHS * batches)
    for _ in range(EPOCHS):
        before_each()
        order = torch.stack([torch.randperm(len(points), generator=generator) for _ in range(NETWORKS)])
        for batch in order.split(BATCH, dim=1):
            inputs = points[batch]
            hidden = _passed(inputs * _kept(inputs, KEPT, generator), encoder[:1]).relu()
            hidden = hidden * _kept(hidden, 1 - DROPPED, generator) / (1 - DROPPED)
            restored = _passed(_passed(hidden, encoder[1:]), decoder)
            loss = (1 - F.cosine_similarity(restored, inputs, dim=2)).mean(dim=1).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    with torch.no_grad():
        return F.normalize(_passed(points.expand(NETWORKS, -1, -1), encoder), dim=2)


def _pairs(*widths: int) -> Iterator[tuple[int, int]]:
    yield from pairwise(widths)


def _layer(inner: int, outer: int, generator: torch.Generator) -> Layer:
    """Return the weights of a linear layer of every network, drawn as torch draws them."""
    weight, bias = (
        (2 * torch.rand(NETWORKS, rows, outer, generator=generator) - 1) / inner**0.5 for rows in (inner, 1)
    )
    return weight.requires_grad_(), bias.requires_grad_()


def _passed(rows: Float[Tensor, "M B i"], layers: Sequence[Layer]) -> Float[Tensor, "M B o"]:
    """Pass rows through each network's layers, with ReLU between them."""
    for number, (weight, bias) in enumerate(layers):
        rows = torch.baddbmm(bias, rows.relu() if number else rows, weight)
    return rows


def _kept(rows: Float[Tensor, "M B i"], share: float, generator: torch.Generator) -> Float[Tensor, "M B i"]:
    return (torch.rand(rows.shape, generator=generator) < share).to(rows.dtype)
