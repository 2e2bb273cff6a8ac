"""What `propos evaluate` measures with the network itself: k-NN, the linear probe, sampled neighbours."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from propos.cli.streams import say
from propos.data import Source, is_array, is_named
from propos.errors import InputError
from propos.evaluation import scores
from propos.evaluation.classes import Classes
from propos.evaluation.linear import ProbeSettings, held_out, probe_accuracy, train_probe
from propos.evaluation.neighbours import NEIGHBOURS, nearest_classes
from propos.evaluation.preservation import REPEATS, preservation_rates
from propos.runner import open_like, open_source_of
from propos.runs import Run
from propos.training import Model, choose_device
from propos.training.seeds import generator

UNLABELLED = "has no labels: give a list with columns image,label or an .npz file"
ONE_OUT = "each image against all others"


@dataclass(frozen=True)
class Measure:
    """Numbers for programs, and the same as a line for people."""

    numbers: dict[str, float | int]
    line: str


@dataclass(frozen=True)
class Subject:
    """A run to be measured: its labels and, read when they are needed, its model and images."""

    run: Run
    labels: Shaped[np.ndarray, " N"] | None
    test: str | None
    device: str
    opened: ExitStack  # closes the images when the measuring ends

    @property
    def known(self) -> Shaped[np.ndarray, " N"]:
        """The labels, for what needs them."""
        assert self.labels is not None
        return self.labels

    @cached_property
    def model(self) -> Model:
        """The run's networks."""
        return Model.from_run(self.run, choose_device(self.device))

    @cached_property
    def classes(self) -> Classes:
        """The classes of the run's labels."""
        return Classes.among(self.known)

    @cached_property
    def own_classes(self) -> Int[Tensor, " N"]:
        """The class of each of the run's images."""
        return torch.from_numpy(self.classes.numbers(self.known)).to(self.model.prototypes.device)

    @cached_property
    def own_embeddings(self) -> Float[Tensor, "N D"]:
        """The embeddings the run ended with."""
        return torch.from_numpy(self.run.embeddings).to(self.model.prototypes.device)

    @cached_property
    def own_images(self) -> Source:
        """The run's images, which must still be those it was trained on."""
        return self.opened.enter_context(open_source_of(self.run))

    @cached_property
    def test_images(self) -> Source:
        """The images to test on."""
        assert self.test is not None
        config = self.model.config
        labels = None if is_array(self.test) or is_named(self.test) else config.labels
        images = self.opened.enter_context(open_like(config, self.test, labels=labels))
        for skipped in images.skipped:
            say(f"skipped {skipped.path}: {skipped.reason}", err=True)
        return images

    @cached_property
    def test_classes(self) -> Int[Tensor, " M"]:
        """The class of each image to test on."""
        if self.test_images.labels is None:
            raise InputError(f"--test {self.test}: {UNLABELLED}")
        return torch.from_numpy(self.classes.numbers(self.test_images.labels)).to(self.model.prototypes.device)

    def neighbours(self, asked: int | None) -> int:
        """Return how many neighbours vote: as many as asked for, else 20 or all there are."""
        others = len(self.known) - (self.test is None)
        if others < 1:
            raise InputError(f"{self.run.path}: holds one image, which has no neighbours")
        if asked is not None and not 1 <= asked <= others:
            raise InputError(f"--neighbours {asked}: choose 1 to {others}, the images there are to vote")
        return min(NEIGHBOURS, others) if asked is None else asked


def prototypes(subject: Subject) -> Measure:
    """Score the clusters of images that were not trained on: each takes its nearest prototype."""
    labels = subject.test_images.labels
    if labels is None:
        raise InputError(f"--test {subject.test}: {UNLABELLED}")
    scored = scores(labels, subject.model.predict(subject.test_images).cluster)
    line = (
        f"NMI {scored['nmi']:.4f}, accuracy {scored['accuracy']:.4f}, ARI {scored['ari']:.4f}, AMI {scored['ami']:.4f}"
    )
    numbers: dict[str, float | int] = {f"test_{name}": value for name, value in scored.items()}
    return Measure({**numbers, "test_images": len(labels)}, f"{line}  ({len(labels):,} test images)")


def knn(subject: Subject, asked: int | None) -> Measure:
    """Classify embeddings by their nearest neighbours among the run's."""
    neighbours = subject.neighbours(asked)
    alone = subject.test is None
    truth = subject.own_classes if alone else subject.test_classes
    queries = subject.own_embeddings if alone else subject.model.embeddings(subject.test_images)
    voted = nearest_classes(subject.own_embeddings, subject.own_classes, queries, neighbours, leave_one_out=alone)
    accuracy = int((voted == truth).sum()) / len(truth)
    how = ONE_OUT if alone else f"{len(truth):,} test images"
    numbers = {"knn_accuracy": accuracy, "knn_neighbours": neighbours, "knn_images": len(truth)}
    return Measure(numbers, f"{accuracy:.4f}  ({neighbours} neighbours, {how})")


def linear(subject: Subject, optimiser: Literal["sgd", "lars"]) -> Measure:
    """Train a linear classifier on the backbone's features."""
    draws = generator(subject.model.config.seed, "linear probe")
    classes, test_classes = subject.own_classes, None if subject.test is None else subject.test_classes
    learnt, tested = torch.arange(len(classes)), torch.empty(0, dtype=torch.long)
    if test_classes is None:
        learnt, tested = held_out(len(classes), draws)
        Classes.among(subject.known[learnt.numpy()])
    features = subject.model.features(subject.own_images)
    probe = train_probe(features[learnt], classes[learnt], draws, ProbeSettings(optimiser))
    if test_classes is None:
        accuracy, count = probe_accuracy(probe, features[tested], classes[tested]), len(tested)
        how = f"on {count:,} images held out at random, a fifth; trained on the features of the other {len(learnt):,}"
    else:
        accuracy = probe_accuracy(probe, subject.model.features(subject.test_images), test_classes)
        count = len(test_classes)
        how = f"on {count:,} test images; trained on the features of {len(learnt):,}"
    numbers = {"linear_accuracy": accuracy, "linear_train_images": len(learnt), "linear_test_images": count}
    return Measure(numbers, f"{accuracy:.4f}  ({how})")


def preservation(subject: Subject, asked: int | None, sigma: float | None) -> Measure:
    """Tell how often positive sampling's neighbours keep the class of their image."""
    neighbours = subject.neighbours(asked)
    alone, config = subject.test is None, subject.model.config
    sigma = config.psa.sigma if sigma is None else sigma
    projections = subject.model.projections(subject.own_images if alone else subject.test_images)
    draws = generator(config.seed, "psa preservation")
    rates = preservation_rates(
        subject.own_embeddings, subject.own_classes, projections, sigma, neighbours, draws, leave_one_out=alone
    )
    mean, spread = float(rates.mean()), float(rates.std())
    numbers = {
        "psa_preservation": mean,
        "psa_preservation_sd": spread,
        "psa_sigma": sigma,
        "psa_neighbours": neighbours,
        "psa_images": len(projections),
    }
    how = ONE_OUT if alone else f"{len(projections):,} test images"
    return Measure(
        numbers, f"{mean:.4f} ± {spread:.4f}  (σ = {sigma:g}, {REPEATS} draws, {neighbours} neighbours, {how})"
    )
