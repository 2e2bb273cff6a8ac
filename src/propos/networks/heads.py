"""Heads: fully connected layers with ReLU between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from propos.networks.centres import CentreSets
from propos.networks.norm import BatchNorm
from propos.networks.precision import full_precision


@dataclass(frozen=True)
class Head:
    """The widths of a head's layers, and where batch norm stands."""

    widths: tuple[int, ...]  # of each layer's output; the last is the head's
    norm: bool = True  # after each layer but the last
    norm_last: bool = False
    smooth: bool = False  # GELU in place of ReLU
    directions: bool = False  # the last layer compares directions
    prototypes: bool = False  # the last layer is one of unit vectors, with which it compares directions
    spread: float | None = None  # it compares distances by Student's t, which is a half where their square is this
    simplex: bool = False  # the last layer learns nothing: it compares with directions as far apart as so many can be
    unit_vectors: int | None = None  # the output is so many vectors side by side, each made a unit vector
    temperature: float = 1.0  # by which the output is divided,
    answers_at: float = 1.0  # and by this as well where it says how sure it is of an answer
    relu_first: bool = False  # for what reads the output of another head
    as_it_is: bool = False  # one layer that begins by changing nothing
    centres: CentreSets | None = None  # in place of layers: sets of centres, of which the first answers

    def __post_init__(self) -> None:
        assert self.directions + self.prototypes + self.simplex <= 1, "a head ends in one kind of layer"
        assert self.spread is None or self.prototypes, "only unit vectors are compared by their distances"


class Directions(nn.Module):
    """A layer without a bias that compares directions: the cosine with each row's, times a gain that is learnt."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.Linear(inner, outer, bias=False).weight.detach())
        self.gain = nn.Parameter(torch.ones(outer))

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B K"]:
        """Return what each row makes of each image."""
        return F.linear(F.normalize(features, dim=1), F.normalize(self.weight, dim=1)) * self.gain


class Prototypes(nn.Module):
    """A layer of unit vectors, one for each output: the cosine with each, or the logarithm of its Student's t.

    That is 1 / (1 + d² / spread), d the distance: the kernel of one degree of freedom. Their lengths say nothing, and a
    step begins with them at 1, so that they neither slow nor hasten what is learnt.
    """

    def __init__(self, inner: int, outer: int, spread: float | None = None) -> None:
        super().__init__()
        self.spread = spread
        self.weight = nn.Parameter(F.normalize(nn.Linear(inner, outer, bias=False).weight.detach(), dim=1))

    def unit(self) -> Float[Tensor, "K F"]:
        """Return them at length 1."""
        return F.normalize(self.weight, dim=1)

    @torch.no_grad()
    def shorten(self) -> None:
        """Bring them back to length 1."""
        self.weight.copy_(self.unit())

    @torch.no_grad()
    def begin_at(self, vectors: Float[Tensor, "K F"]) -> None:
        """Put them where these are."""
        self.weight.copy_(vectors)

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B K"]:
        """Return the cosines, or the logarithms of what Student's t makes of the distances."""
        cosines = F.linear(F.normalize(features, dim=1), self.unit())
        return cosines if self.spread is None else -torch.log1p((2 - 2 * cosines) / self.spread)


class Simplex(nn.Module):
    """A layer that learns nothing: the cosine with each of K directions, any two of which have one of −1/(K − 1).

    The k-th direction is the k-th axis less the mean of the first K axes, at length 1.
    """

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        assert 2 <= outer <= inner, f"{outer} directions of this kind need as many numbers, not {inner}"
        self.directions = outer

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B K"]:
        """Return the cosines."""
        along = F.normalize(features, dim=1)[:, : self.directions]
        return math.sqrt(self.directions / (self.directions - 1)) * (along - along.mean(dim=1, keepdim=True))


class UnitVectors(nn.Module):
    """A layer that makes each of several vectors, side by side in a row, a unit vector."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, rows: Float[Tensor, "B F"]) -> Float[Tensor, "B F"]:
        """Return the rows with each vector at length 1."""
        return F.normalize(rows.unflatten(1, (self.count, -1)), dim=2).flatten(1)


def _last_layer(head: Head, inner: int) -> nn.Module:
    """Return the layer that a head ends in, which compares what it reads, or makes its outputs of it."""
    outer = head.widths[-1]
    if head.prototypes:
        return Prototypes(inner, outer, head.spread)
    return (Directions if head.directions else Simplex if head.simplex else nn.Linear)(inner, outer)


class Mlp(nn.Sequential):
    """Fully connected layers, batch norm and ReLU, in the precision of their weights wherever they stand.

    Half precision is for the backbone: the rounding of bfloat16 is as large as the noise of positive sampling.
    """

    def __init__(self, inner: int, head: Head) -> None:
        layers: list[nn.Module] = [nn.ReLU()] if head.relu_first else []
        hidden = head.widths[:-1]
        for number, width in enumerate(hidden):
            layers += [nn.Linear(inner, width), *([BatchNorm(width)] if head.norm else [])]
            compares = head.directions or head.prototypes or head.simplex
            if not (compares and number == len(hidden) - 1):  # what is compared lies on the whole sphere
                layers.append(nn.GELU() if head.smooth else nn.ReLU(inplace=True))
            inner = width
        layers.append(_last_layer(head, inner))
        if head.norm_last:
            layers.append(BatchNorm(head.widths[-1]))
        if head.unit_vectors is not None:
            layers.append(UnitVectors(head.unit_vectors))
        super().__init__(*layers)
        self.temperature, self.answers_at = head.temperature, head.answers_at
        if head.as_it_is:
            (layer,) = layers
            assert isinstance(layer, nn.Linear)
            nn.init.eye_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B D"]:
        """Return what the layers make of features, which may come in half precision."""
        with full_precision(features.device):
            made: Tensor = super().forward(features.to(next(self.parameters()).dtype))  # type: ignore[no-untyped-call]
        return made if self.temperature == 1.0 else made / self.temperature

    def answer(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B K"]:
        """Return what it says of features: the one head that there is."""
        answered: Tensor = self(features)
        return answered if self.answers_at == 1.0 else answered / self.answers_at


class Heads(nn.Module):
    """Several heads of one kind, each with first weights of its own, of which one is chosen to answer."""

    def __init__(self, inner: int, head: Head, count: int) -> None:
        super().__init__()
        self.each = nn.ModuleList(Mlp(inner, head) for _ in range(count))
        self.register_buffer("chosen", torch.zeros((), dtype=torch.long))

    def forward(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B H K"]:
        """Return what each head says of features."""
        return torch.stack([head(features) for head in self.each], dim=1)

    def answer(self, features: Float[Tensor, "B F"]) -> Float[Tensor, "B K"]:
        """Return what the chosen head says of features."""
        said: Tensor = self(features)
        return said.index_select(1, self.get_buffer("chosen")[None])[:, 0]


def initialise_predictor(predictor: Mlp) -> None:
    """Start the predictor's linear layers at N(0, 0.01) with zero bias, so that it begins by saying little."""
    for layer in predictor:
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)


def restart(head: nn.Module, seed: int) -> None:
    """Start a head's linear layers once more at N(0, 0.01) with zero bias, by a seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for layer in head.modules():
            if isinstance(layer, nn.Linear):
                layer.weight.copy_(0.01 * torch.randn(layer.weight.shape))
                layer.bias.zero_()
