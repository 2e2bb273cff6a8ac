"""The linear probe: one linear layer trained on frozen features."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from propos.common.errors import InputError
from propos.training.optimisers import Lars, exempt_vectors

STEPS_AN_EPOCH = 16

# A function from positions among the training images to their features.
Features = Callable[[Int[Tensor, " B"]], Float[Tensor, "B F"]]


@dataclass(frozen=True)
class ProbeSettings:
    """The paper's settings: 90 epochs of SGD, momentum 0.9, no decay, batches of 4,096, a rate of 1.6, a cosine to 0.

    The rate is 0.1 for 256 images; a batch is smaller where 4,096 would leave fewer than 16 steps an epoch. LARS, whose
    steps are in proportion to the weights, keeps the rate of 1.6 then: with a smaller one it would hardly move.
    """

    optimiser: Literal["sgd", "lars"] = "sgd"
    epochs: int = 90
    batch_size: int = 4096
    lr: float = 0.1
    momentum: float = 0.9


def train_probe(
    features: Features,
    width: int,
    classes: Int[Tensor, " N"],
    generator: torch.Generator,
    settings: ProbeSettings | None = None,
) -> nn.Linear:
    """Train a linear classifier and return it; it depends on the features and the generator alone."""
    settings = settings or ProbeSettings()
    count = len(classes)
    batch = min(settings.batch_size, math.ceil(count / STEPS_AN_EPOCH))
    probe = _build_probe(width, int(classes.max()) + 1, generator).to(classes.device)
    rate = settings.lr * (settings.batch_size if settings.optimiser == "lars" else batch) / 256
    optimiser = _optimiser(probe, settings, rate)
    steps = settings.epochs * math.ceil(count / batch)
    for step, places in enumerate(_batches(count, batch, settings.epochs, generator)):
        for group in optimiser.param_groups:
            group["lr"] = rate * (1 + math.cos(math.pi * step / steps)) / 2
        seen = features(places)
        if not torch.isfinite(seen).all():
            raise InputError("linear probe: the features contain NaN or infinity: the run has failed")
        loss = F.cross_entropy(probe(seen), classes[places.to(classes.device)])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return probe


@torch.no_grad()
def probe_accuracy(probe: nn.Linear, features: Iterable[Float[Tensor, "b F"]], classes: Int[Tensor, " N"]) -> float:
    """Return the accuracy of the probe on images, whose features come in batches."""
    predicted = torch.cat([probe(batch).argmax(dim=1) for batch in features])
    return int((predicted == classes).sum()) / len(classes)


def held_out(count: int, generator: torch.Generator) -> tuple[Int[Tensor, " n"], Int[Tensor, " m"]]:
    """Return the positions of a random training set and of a test set, a fifth of the images."""
    if count < 2:
        raise InputError("linear probe: one image cannot be both trained and tested on: give more images")
    order = torch.randperm(count, generator=generator)
    test = max(1, count // 5)
    return order[test:].sort().values, order[:test].sort().values


def _build_probe(features: int, classes: int, generator: torch.Generator) -> nn.Linear:
    probe = nn.Linear(features, classes)
    with torch.no_grad():
        probe.weight.copy_(0.01 * torch.randn(probe.weight.shape, generator=generator))
        probe.bias.zero_()
    return probe


def _optimiser(probe: nn.Linear, settings: ProbeSettings, rate: float) -> torch.optim.Optimizer:
    if settings.optimiser == "lars":
        return Lars(exempt_vectors(probe.parameters(), adapts=True), lr=rate, momentum=settings.momentum)
    return torch.optim.SGD(probe.parameters(), lr=rate, momentum=settings.momentum)


def _batches(count: int, batch: int, epochs: int, generator: torch.Generator) -> Iterator[Int[Tensor, " B"]]:
    for _ in range(epochs):
        yield from torch.randperm(count, generator=generator).split(batch)
