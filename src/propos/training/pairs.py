"""What a step feeds the networks: two views of each image, of an image and a neighbour, or their features."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from propos.augment import Frames, Shapes, shapes_of
from propos.data import Source
from propos.distributed import share
from propos.training.feeding import plain
from propos.training.learner import Learner
from propos.training.reading import read
from propos.training.seeds import generator
from propos.training.state import State
from propos.transfer import send

Pair = tuple[Float[Tensor, "b ..."], Float[Tensor, "b ..."]]


def paired_views(
    learner: Learner, source: Source, batch: Int[Tensor, " B"], state: State, when: tuple[int, int]
) -> Pair:
    """Return this process's share of the pairs of a batch, as the stage pairs them."""
    pairs = learner.stage.pairs
    partners = batch if pairs.partner == "itself" else _neighbours(learner, batch, state, when)
    if pairs.of == "features":
        mine, table = share(len(batch)), state.prepared["features"]
        return table[send(batch[mine], table.device)], table[send(partners[mine], table.device)]
    if partners is batch and (pairs.first, pairs.second) == ("random", "random"):
        return _random_views(learner, source, batch, when)
    # What is random is drawn alike for both: which of the two views is taken decides.
    random, plain = _random_views, _plain_view
    first = plain(learner, source, batch) if pairs.first == "plain" else random(learner, source, batch, when)[0]
    second = plain(learner, source, partners) if pairs.second == "plain" else random(learner, source, partners, when)[1]
    return first, second


def _neighbours(learner: Learner, batch: Int[Tensor, " B"], state: State, when: tuple[int, int]) -> Int[Tensor, " B"]:
    """Return one of the neighbours of each image, drawn for the whole batch."""
    table = state.neighbours
    assert table is not None
    drawn = torch.randint(table.shape[1], (len(batch),), generator=generator(learner.seed, "neighbours", *when))
    return table[batch, drawn]


def _random_views(learner: Learner, source: Source, batch: Int[Tensor, " B"], when: tuple[int, int]) -> Pair:
    images, aspects, frames = _images(learner, source, batch)
    draw, mine = generator(learner.seed, "views", *when), (len(batch), share(len(batch)))
    return learner.views(images, draw, aspects, mine, frames)


def _plain_view(learner: Learner, source: Source, batch: Int[Tensor, " B"]) -> Float[Tensor, "b C S S"]:
    images, aspects, frames = _images(learner, source, batch)
    mine = None if aspects is None else aspects[share(len(batch))]
    return plain(images, learner.config, Shapes(mine, frames))


def _images(
    learner: Learner, source: Source, batch: Int[Tensor, " B"]
) -> tuple[UInt8[Tensor, "b C H W"], Float[Tensor, " B"] | None, Frames | None]:
    """Return this process's images of a batch, all aspects, its frames; places past the clustered are the others'."""
    places = batch.numpy()
    images = read(source, places[share(len(places))], learner.device)
    if source.unlabelled is not None and places[0] >= len(source):
        source, places = source.unlabelled, places - len(source)
    whole, mine = shapes_of(source, places), share(len(places))
    return images, whole.aspects, None if whole.frames is None else whole.frames.of(mine)
