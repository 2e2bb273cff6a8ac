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
    partners = partners_of(learner, batch, state, when)
    if pairs.of == "features":
        mine, table = share(len(batch)), state.prepared["features"]
        return table[send(batch[mine], table.device)], table[send(partners[mine], table.device)]
    if partners is batch and (pairs.first, pairs.second) == ("random", "random"):
        return _random_views(learner, source, batch, when)
    first = _view(learner, source, when, 0, pairs.first, batch)
    return first, _view(learner, source, when, 1, pairs.second, partners)


def further_view(
    learner: Learner, source: Source, batch: Int[Tensor, " B"], when: tuple[int, int]
) -> Float[Tensor, "b ..."] | None:
    """Return this process's share of one more view of a batch, if the stage wants one."""
    kind = learner.stage.pairs.again
    return None if kind is None else _view(learner, source, (*when, 1), 0, kind, batch)


def partners_of(learner: Learner, batch: Int[Tensor, " B"], state: State, when: tuple[int, int]) -> Int[Tensor, " B"]:
    """Return whom the second views are of: the images themselves, or one of each one's neighbours, drawn for all."""
    if learner.stage.pairs.partner == "itself":
        return batch
    table = state.neighbours
    assert table is not None
    drawn = torch.randint(table.shape[1], (len(batch),), generator=generator(learner.seed, "neighbours", *when))
    return table[batch, drawn]


def _view(
    learner: Learner, source: Source, when: tuple[int, ...], place: int, kind: str, batch: Int[Tensor, " B"]
) -> Float[Tensor, "b ..."]:
    """Return the first or the second view of a pair, of the kind that the stage wants."""
    if kind == "random":  # drawn alike for both: which of the two views is taken decides
        return _random_views(learner, source, batch, when)[place]
    images, aspects, frames = _images(learner, source, batch)
    mine = share(len(batch))
    shapes = Shapes(None if aspects is None else aspects[mine], frames)
    if kind == "plain":
        return plain(images, learner.config, shapes)
    draw = generator(learner.seed, "strong", place, *when)
    return learner.strong(images, draw, (len(batch), mine), shapes)


def _random_views(learner: Learner, source: Source, batch: Int[Tensor, " B"], when: tuple[int, ...]) -> Pair:
    images, aspects, frames = _images(learner, source, batch)
    draw, mine = generator(learner.seed, "views", *when), (len(batch), share(len(batch)))
    return learner.views(images, draw, aspects, mine, frames)


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
