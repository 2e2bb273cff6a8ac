"""Single kinds of work of the self-test: steps, embeddings, clusters, classifiers, transfers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.cli.gpu_check.finding import Row, Values, relative_difference
from propos.clustering import nearest_in_blocks, spherical_kmeans
from propos.config import Config
from propos.data import Source
from propos.distributed.transfer import PinnedRing
from propos.evaluation.classes import Classes
from propos.evaluation.neighbours import NEIGHBOURS, nearest_classes
from propos.methods import find_method, method_names
from propos.methods.seeds import generator
from propos.runner import Length, Request, plan
from propos.training import Model, default_precision
from propos.training.e_step import e_step
from propos.training.embedding import embed_batches
from propos.training.estimate import late_state
from propos.training.learner import Learner, at_stage, build_learner
from propos.training.linear_probe import ProbeSettings, train_probe
from propos.training.m_step import m_step
from propos.training.numerics import numerics
from propos.training.prefetch import reading_ahead
from propos.training.stage_setup import begin_epoch
from propos.training.state import State

STEPS = 3  # compared steps: the later ones depend on the gradients of the earlier
PROBE = ProbeSettings(epochs=5)
BUFFERS, TABLES, TABLE_BYTES = 4, 32, 2**24
FEW = 64  # images in a step of each method
LONG = Length(epochs=8)  # enough for the stages of every method
# Bounds: rounding in single precision; the same after one step, and after some, which amplify it; half precision; ties.
SINGLE, ONE_STEP, TRAINED, HALF, TIES, EQUAL = 1e-3, 0.01, 0.1, 0.2, 2e-3, 0.0


@dataclass(frozen=True)
class SingleWork:
    """The images and settings of the self-test."""

    request: Request
    source: Source
    config: Config

    def rows(self, card: torch.device) -> Iterator[Row]:
        """Yield the rows of the table."""
        precision = default_precision(card)
        yield Row("training step, float32", self._steps, TRAINED)
        if precision != "float32":
            half = partial(self._rough_steps, precision=precision)
            training = partial(self._training, card, precision)
            yield Row(f"training step, {precision}", half, HALF, self._rough_steps, timed=training)
        yield Row("embedding", self._embeddings, SINGLE, timed=partial(self._embedding, card))
        yield Row("E-step", self._e_step, SINGLE)
        yield Row("predict", self._predict, SINGLE)
        yield Row("k-means", self._kmeans, SINGLE)
        yield Row("evaluate --knn", self._neighbours, TIES, difference=_of_neighbours)
        yield Row("evaluate --linear", self._probe, SINGLE)
        yield Row("pinned transfer", self._sent, EQUAL, lambda _: self._tables)

    def rows_of_methods(self) -> Iterator[Row]:
        """Yield a row for each method that is trained on images."""
        for method in method_names():
            if find_method(method).trains and "images" in find_method(method).inputs:
                yield Row(f"step of {method}", partial(self._method_steps, method), ONE_STEP)

    @cached_property
    def points(self) -> Float[Tensor, "N F"]:
        """The pixels of each image as a unit vector."""
        pixels = torch.from_numpy(self.source.batch(np.arange(len(self.source)))).float().flatten(1)
        return F.normalize(pixels, dim=1)

    @cached_property
    def classes(self) -> Int[Tensor, " N"]:
        """The class of each image."""
        assert self.source.labels is not None
        return torch.from_numpy(Classes.from_labels(self.source.labels).numbers(self.source.labels))

    def _learner(self, device: torch.device, precision: str = "float32", repeats: bool = True) -> Learner:
        return build_learner(exact(self.config, precision, repeats), self.source, device)

    def _steps(self, device: torch.device) -> Values:
        """Return the loss terms of a few steps, how they changed the weights, and the images' embeddings then."""
        terms, changes, embeddings = self._stepped(device, "float32")
        return [*terms, *changes, embeddings]

    def _rough_steps(self, device: torch.device, precision: str = "float32") -> Values:
        """Return the same, but of the changes only their lengths: in half precision single gradients are rough."""
        terms, changes, embeddings = self._stepped(device, precision)
        return [*terms, *(change.norm() for change in changes), embeddings]

    def _stepped(self, device: torch.device, precision: str) -> tuple[Values, Values, Float[Tensor, "N D"]]:
        learner = self._learner(device, precision)
        with numerics(learner.config.train):
            terms, changes = steps(learner, self.source, late_state(learner), learner.config.train.batch_size)
            outputs = embed_batches(learner.method.online, self.source, learner.config)
            return terms, changes, torch.cat(list(outputs))

    @contextmanager
    def _training(self, card: torch.device, precision: str) -> Iterator[tuple[Callable[[], object], int]]:
        """Yield a training step as a run takes it, and its number of images."""
        learner = self._learner(card, precision, repeats=False)
        size = min(learner.config.train.batch_size, len(self.source)) * learner.schedule.accumulate
        with numerics(learner.config.train), reading_ahead(self.source, card) as ahead:
            state = late_state(learner)
            yield lambda: m_step(learner, ahead, torch.arange(size), state), size

    def _method_steps(self, method: str, device: torch.device) -> Values:
        """Return the loss terms of a step of each stage of a method, and how it changed the weights."""
        settings = {"train.batch_size": FEW, "train.warmup": 0}
        request = replace(self.request, method=method, length=LONG, settings=settings)
        values: list[Tensor] = []
        with plan(request, device.type) as planned:
            learner = build_learner(exact(planned.config), planned.source, device)
            for number in range(len(learner.stages)):
                learner = at_stage(learner, number)
                with numerics(learner.config.train):
                    state = late_state(learner)
                    if learner.stage.tables_every is not None:
                        state.epoch = learner.epochs.start
                        begin_epoch(learner, planned.source, state)
                    terms, changes = steps(learner, planned.source, state, FEW, count=1)
                    # Only lengths: Adam's first step is the sign of a gradient, however small.
                    values += [*terms, *(change.norm() for change in changes)]
        return values

    def _embeddings(self, device: torch.device) -> Values:
        """Return the embeddings of all images by a network that is not trained yet."""
        return [self._embedded(self._learner(device))]

    def _embedded(self, learner: Learner) -> Float[Tensor, "N D"]:
        with numerics(learner.config.train):
            return torch.cat(list(embed_batches(learner.method.embedder, self.source, learner.config)))

    @contextmanager
    def _embedding(self, card: torch.device) -> Iterator[tuple[Callable[[], object], int]]:
        """Yield the embedding of all images as a run does it, and their number."""
        learner = self._learner(card, default_precision(card), repeats=False)
        yield lambda: self._embedded(learner), len(self.source)

    def _e_step(self, device: torch.device) -> Values:
        """Return the embeddings that an E-step clusters, and the mean cosine with their prototypes."""
        learner = self._learner(device)
        with numerics(learner.config.train):
            found = e_step(learner, self.source, 0, None)
        return [found.embeddings, (found.embeddings * found.prototypes[found.labels]).sum(dim=1).mean()]

    def _predict(self, device: torch.device) -> Values:
        """Return each image's distance from the nearest of a few prototypes."""
        learner = self._learner(device)
        prototypes = self._embedded(learner)[: self.config.clusters]
        model = Model(learner.config, learner.method, prototypes, np.arange(len(prototypes)))
        with numerics(learner.config.train):
            return [torch.from_numpy(model.predict(self.source).distance)]

    def _kmeans(self, device: torch.device) -> Values:
        """Return the mean distance from the centres."""
        assert self.config.clusters is not None
        draw = generator(self.config.seed, "gpu check")
        found = spherical_kmeans(self.points.to(device), self.config.clusters, self.config.estep.restarts, draw)
        return [torch.tensor(found.inertia / len(self.points))]

    def _neighbours(self, device: torch.device) -> Values:
        """Return the cosines with the nearest neighbours of each image, and the class that they vote for."""
        points = self.points.to(device)
        cosines = torch.cat([nearest for nearest, _ in nearest_in_blocks(points, points, NEIGHBOURS, 0)])
        return [cosines, nearest_classes(points, self.classes.to(device), points, leave_one_out=True)]

    def _probe(self, device: torch.device) -> Values:
        """Return the weights of a linear classifier of the pixels, and its outputs for all images."""
        points, classes = self.points.to(device), self.classes.to(device)
        draw = generator(self.config.seed, "gpu check")
        probe = train_probe(lambda places: points[places.to(device)], points.shape[1], classes, draw, PROBE)
        return [probe.weight.detach(), probe.bias.detach(), probe(points).detach()]

    @cached_property
    def _tables(self) -> Values:
        draw = generator(self.config.seed, "gpu check")
        table = torch.randint(256, (TABLE_BYTES // TABLES,), generator=draw, dtype=torch.uint8)
        return [table.roll(number) for number in range(TABLES)]

    def _sent(self, device: torch.device) -> Values:
        """Return tables that went through pinned buffers, more than there are buffers."""
        ring = PinnedRing(device, BUFFERS)
        return [ring.send(table)().cpu() for table in self._tables]


def exact(config: Config, precision: str = "float32", repeats: bool = True) -> Config:
    """Return settings with a precision, and algorithms that repeat or are fast."""
    return config.with_settings({"train.precision": precision, "train.deterministic": repeats})


def steps(learner: Learner, source: Source, state: State, size: int, count: int = STEPS) -> tuple[Values, Values]:
    """Take steps; return the values of each loss term, and the change of each trained module's own weights."""
    # Moving averages move by less than rounding.
    modules = [module for module in learner.method.modules() if _is_trained(module)]
    before = [_own_weights(module) for module in modules]
    positions = torch.arange(min(size, len(source))).repeat(learner.schedule.accumulate)
    losses = [m_step(learner, source, positions, state) for _ in range(count)]
    terms = [torch.stack([each[name] for each in losses]) for name in losses[0]]
    return terms, [_own_weights(module) - old for module, old in zip(modules, before, strict=True)]


def _is_trained(module: torch.nn.Module) -> bool:
    return any(each.requires_grad for each in module.parameters(recurse=False))


def _own_weights(module: torch.nn.Module) -> Float[Tensor, " W"]:
    """Return a copy of a module's own parameters: a bias without a gradient is compared with its layer's weights."""
    return torch.cat([each.detach().flatten() for each in module.parameters(recurse=False)])


def _of_neighbours(found: Values, expected: Values) -> float:
    """Return the difference of the cosines, or the share of images with another class, whichever is larger."""
    if len(found) != len(expected):
        return torch.inf
    (cosines, voted), (true_cosines, true_voted) = found, expected
    return max(relative_difference(cosines, true_cosines), float((voted != true_voted).double().mean()))
