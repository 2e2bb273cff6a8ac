"""A self-test of a GPU: every kind of work once on the CPU and once on the card, compared within stated bounds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from propos.clustering import spherical_kmeans
from propos.common.errors import Interrupted
from propos.config import Config
from propos.data import Source
from propos.distributed.transfer import PinnedRing
from propos.evaluation.classes import Classes
from propos.evaluation.neighbours import nearest_classes
from propos.methods.seeds import generator
from propos.runner.execute import execute_plan
from propos.runner.planning import plan
from propos.runner.progress import Stopping
from propos.runner.request import Length, Request
from propos.training import Model, default_precision
from propos.training.embedding import embed_batches
from propos.training.estimate import late_state
from propos.training.learner import Learner, build_learner
from propos.training.linear_probe import ProbeSettings, probe_accuracy, train_probe
from propos.training.m_step import m_step
from propos.training.model import weights_of
from propos.training.numerics import numerics
from propos.training.reading import reading_ahead

USUAL = Request(source="digits", recipe="digits", length=Length(epochs=2))  # scikit-learn's digits need no download
CPU = torch.device("cpu")
STEPS = 3  # compared steps: the later ones depend on the gradients of the earlier
REPEATS = 10  # timed calls
CYCLES_A_SECOND = 2e9  # of the card's clock, at most: only so that it sleeps long enough
PROBE = ProbeSettings(epochs=5)
BUFFERS, TABLES, TABLE_BYTES = 4, 32, 2**24
ASKED_BEFORE_STOP = 5  # a run asks before every step whether to stop
# Bounds: rounding in single precision, in half precision, and in ties.
SINGLE, HALF, TIES, EQUAL = 1e-3, 0.05, 0.01, 0.0


@dataclass(frozen=True)
class Finding:
    """A kind of work on the card: how far its result is from the CPU's, and how fast it was."""

    name: str
    difference: float
    bound: float
    peak_bytes: int
    images_a_second: float | None = None
    busy: float | None = None  # the share of the time in which the card computes

    @property
    def agrees(self) -> bool:
        """Whether the difference is within the bound; NaN never is."""
        return self.difference <= self.bound


@dataclass(frozen=True)
class GpuCheck:
    """The images and settings of the self-test, and the card."""

    request: Request
    source: Source
    config: Config  # complete, in single precision and with algorithms that repeat
    card: torch.device

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

    def findings(self) -> Iterator[Finding]:
        """Yield the result of each kind of work as soon as it is known."""
        precision = default_precision(self.card)
        yield self._compare("training step, float32", self._steps, SINGLE)
        if precision != "float32":
            yield self._training(precision)
        yield self._embedding()
        yield self._compare("predict", self._predict, SINGLE)
        yield self._compare("k-means", self._kmeans, SINGLE)
        yield self._compare("k-NN", self._neighbours, TIES, _disagreement)
        yield self._compare("linear probe", self._probe, TIES)
        yield self._transfer()
        yield self._resume()

    def _compare(
        self,
        name: str,
        work: Callable[[torch.device], Tensor],
        bound: float,
        difference: Callable[[Tensor, Tensor], float] | None = None,
        expected: Tensor | None = None,
    ) -> Finding:
        torch.cuda.reset_peak_memory_stats(self.card)
        found = work(self.card).cpu()
        peak = torch.cuda.max_memory_allocated(self.card)
        expected = work(CPU) if expected is None else expected
        return Finding(name, (difference or relative_difference)(found, expected), bound, peak)

    def _learner(self, device: torch.device, precision: str = "float32", repeats: bool = True) -> Learner:
        config = self.config.with_settings({"train.precision": precision, "train.deterministic": repeats})
        return build_learner(config, self.source, device)

    def _steps(self, device: torch.device, precision: str = "float32") -> Float[Tensor, "S L"]:
        """Return the loss terms of a few steps."""
        learner = self._learner(device, precision)
        step = self._step(learner, self.source)
        with numerics(learner.config.train):
            return torch.stack([torch.stack(list(step().values())) for _ in range(STEPS)]).cpu()

    def _step(self, learner: Learner, source: Source) -> Callable[[], dict[str, Tensor]]:
        state, size = late_state(learner), min(learner.config.train.batch_size, len(source))
        positions = torch.arange(size).repeat(learner.schedule.accumulate)
        return lambda: m_step(learner, source, positions, state)

    def _training(self, precision: str) -> Finding:
        """Compare steps in the card's usual precision with the CPU's in single precision, and time them."""
        name = f"training step, {precision}"
        found = self._compare(name, lambda device: self._steps(device, precision), HALF, None, self._steps(CPU))
        learner = self._learner(self.card, precision, repeats=False)
        size = min(learner.config.train.batch_size, len(self.source)) * learner.schedule.accumulate
        with numerics(learner.config.train), reading_ahead(self.source, self.card) as ahead:
            return self._timed(found, self._step(learner, ahead), size)

    def _embedding(self) -> Finding:
        """Compare the embeddings of all images by a network that is not trained yet, and time them."""
        found = self._compare("embedding", lambda device: self._embedded(self._learner(device)), SINGLE)
        learner = self._learner(self.card, default_precision(self.card), repeats=False)
        with numerics(learner.config.train):
            return self._timed(found, lambda: self._embedded(learner), len(self.source))

    def _embedded(self, learner: Learner) -> Float[Tensor, "N D"]:
        with numerics(learner.config.train):
            return torch.cat(list(embed_batches(learner.method.embedder, self.source, learner.config)))

    def _predict(self, device: torch.device) -> Float[Tensor, " N"]:
        """Return each image's distance from the nearest of a few prototypes."""
        learner = self._learner(device)
        prototypes = self._embedded(learner)[: self.config.clusters]
        model = Model(learner.config, learner.method, prototypes, np.arange(len(prototypes)))
        with numerics(learner.config.train):
            return torch.from_numpy(model.predict(self.source).distance)

    def _kmeans(self, device: torch.device) -> Float[Tensor, ""]:
        """Return the mean distance from the centres."""
        draw = generator(self.config.seed, "gpu check")
        assert self.config.clusters is not None
        found = spherical_kmeans(self.points.to(device), self.config.clusters, self.config.estep.restarts, draw)
        return torch.tensor(found.inertia / len(self.points))

    def _neighbours(self, device: torch.device) -> Int[Tensor, " N"]:
        points = self.points.to(device)
        return nearest_classes(points, self.classes.to(device), points, leave_one_out=True).cpu()

    def _probe(self, device: torch.device) -> Float[Tensor, ""]:
        """Return the accuracy of a linear classifier of the pixels."""
        points, classes, draw = (
            self.points.to(device),
            self.classes.to(device),
            generator(self.config.seed, "gpu check"),
        )
        probe = train_probe(lambda places: points[places.to(device)], points.shape[1], classes, draw, PROBE)
        return torch.tensor(probe_accuracy(probe, [points], classes))

    def _transfer(self) -> Finding:
        """Send tables through pinned buffers, more than there are buffers, and count those that arrive changed."""
        draw = generator(self.config.seed, "gpu check")
        table = torch.randint(256, (TABLE_BYTES // TABLES,), generator=draw, dtype=torch.uint8)
        ring, changed = PinnedRing(self.card, BUFFERS), 0
        for number in range(TABLES):
            sent = table.roll(number)
            changed += not torch.equal(ring.send(sent)().cpu(), sent)
        return Finding("pinned transfer", float(changed), EQUAL, 0)

    def _resume(self) -> Finding:
        """Compare the weights of a run on the card with those of one that was stopped and resumed."""
        settings = {**self.request.settings, "train.deterministic": True}
        torch.cuda.reset_peak_memory_stats(self.card)
        with TemporaryDirectory() as folder, plan(replace(self.request, settings=settings), "cuda") as planned:
            whole = weights_of(execute_plan(planned).model.method)
            _stop_early(lambda stopping: execute_plan(planned, Path(folder) / "run", stopping=stopping))
            resumed = weights_of(execute_plan(planned, Path(folder) / "run").model.method)
        difference = max(float(np.abs(value - resumed[name]).max(initial=0)) for name, value in whole.items())
        return Finding("resume", difference, EQUAL, torch.cuda.max_memory_allocated(self.card))

    def _timed(self, finding: Finding, work: Callable[[], object], images: int) -> Finding:
        """Return a finding with the images a second and the share of the time in which the card computes.

        For the latter the card sleeps until the host has queued the work, which it then does without a gap.
        """
        work()  # the first call chooses algorithms
        torch.cuda.synchronize(self.card)
        torch.cuda.reset_peak_memory_stats(self.card)
        begin = time.perf_counter()
        for _ in range(REPEATS):
            work()
        torch.cuda.synchronize(self.card)
        seconds = (time.perf_counter() - begin) / REPEATS
        started, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(int(CYCLES_A_SECOND * seconds))
        started.record()
        work()
        ended.record()
        torch.cuda.synchronize(self.card)
        busy = min(1.0, started.elapsed_time(ended) / 1000 / seconds)
        peak = torch.cuda.max_memory_allocated(self.card)
        return replace(finding, images_a_second=images / seconds, busy=busy, peak_bytes=peak)


def check_gpu(request: Request = USUAL) -> Iterator[Finding]:
    """Yield what the self-test of the first GPU finds, one kind of work after another."""
    with plan(request, "cuda") as planned:
        yield from GpuCheck(request, planned.source, planned.config, planned.device).findings()


def relative_difference(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference, relative to the largest value; NaN and other shapes are infinitely far."""
    if found.shape != expected.shape:
        return math.inf
    difference = float(
        (found.double() - expected.double()).abs().max() / expected.double().abs().max().clamp(min=1e-12)
    )
    return difference if math.isfinite(difference) else math.inf


def _disagreement(found: Tensor, expected: Tensor) -> float:
    """Return the share of values that differ."""
    return float((found != expected).double().mean()) if found.shape == expected.shape else math.inf


def _stop_early(run: Callable[[Stopping], object]) -> None:
    """Stop a run after a few steps."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > ASKED_BEFORE_STOP

    @contextmanager
    def stopping() -> Iterator[Callable[[], bool]]:
        yield stop

    try:
        run(stopping)
    except Interrupted:
        return
    raise AssertionError("the run ended before it was stopped")
