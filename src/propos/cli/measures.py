"""Measures of `propos evaluate` that need the network: k-NN, linear probe, sampled neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from propos.cli.eval_target import UNLABELLED, EvalTarget
from propos.clustering import assign
from propos.common.errors import InputError
from propos.evaluation import scores
from propos.evaluation.classes import Classes
from propos.evaluation.neighbours import nearest_classes
from propos.evaluation.preservation import REPEATS, Bank, preservation_rates
from propos.methods.seeds import generator
from propos.training.linear_probe import ProbeSettings, held_out
from propos.training.probes import LabelledImages, linear_accuracy, probe_draws

SIGMA = 0.001  # the paper's, for methods that sample no neighbours
ONE_OUT = "each image against all others"
Probe = Literal["paper", "fast"]


@dataclass(frozen=True)
class Measure:
    """A measure: its numbers, and the line to print."""

    numbers: dict[str, float | int]
    line: str


def prototypes(subject: EvalTarget) -> Measure:
    """Score the clusters of images that were not trained on: nearest prototypes, or the cluster head's predictions."""
    labels = subject.test_images.labels
    if labels is None:
        raise InputError(f"--test {subject.test}: {UNLABELLED}")
    found = subject.clustering
    if found is None:
        cluster = subject.model.predict(subject.test_images).cluster
    else:
        cluster = assign(subject.model.embeddings(subject.test_images).cpu(), found.centres)[0].numpy()
    scored = scores(labels, cluster)
    line = (
        f"NMI {scored['nmi']:.4f}, accuracy {scored['accuracy']:.4f}, ARI {scored['ari']:.4f}, AMI {scored['ami']:.4f}"
    )
    numbers: dict[str, float | int] = {f"test_{name}": value for name, value in scored.items()}
    return Measure({**numbers, "test_images": len(labels)}, f"{line}  ({len(labels):,} test images)")


def knn(subject: EvalTarget, asked: int | None) -> Measure:
    """Classify embeddings by their nearest neighbours among the run's."""
    alone = subject.test is None
    truth = subject.own_classes if alone else subject.test_classes
    voters = subject.taught_by
    neighbours = subject.neighbours(asked, len(voters) - alone)
    queries = subject.own_embeddings if alone else subject.model.embeddings(subject.test_images)
    bank, classes = subject.own_embeddings[voters], subject.own_classes[voters]
    voted = nearest_classes(bank, classes, queries, neighbours, leave_one_out=alone)
    accuracy = int((voted == truth).sum()) / len(truth)
    how = ONE_OUT if alone else f"{len(truth):,} test images{subject.shared(len(voters))}"
    numbers = {"knn_accuracy": accuracy, "knn_neighbours": neighbours, "knn_images": len(truth)}
    return Measure(numbers, f"{accuracy:.4f}  ({neighbours} neighbours, {how})")


def linear(subject: EvalTarget, how: Probe, optimiser: Literal["sgd", "lars"]) -> Measure:
    """Train a linear classifier on the backbone's features: of a random crop in every epoch, or fixed ones."""
    draws = probe_draws(subject.model.config)
    kind = "random crops, as in the paper" if how == "paper" else "fixed features, without the paper's crops"
    if subject.test is None:
        learnt, tested = (subject.own(places) for places in held_out(len(subject.own_classes), draws))
        Classes.from_labels(subject.known[learnt.positions.numpy()])
        words = (
            f"on {len(tested.classes):,} images held out at random, a fifth; "
            f"trained on {kind}, of the other {len(learnt.classes):,}"
        )
    else:
        truth = subject.test_classes
        learnt = subject.own(subject.taught_by.cpu())
        tested = LabelledImages(subject.test_images, torch.arange(len(truth)), truth)
        shared = subject.shared(len(learnt.classes))
        words = f"on {len(truth):,} test images{shared}; trained on {kind}, of {len(learnt.classes):,}"
    accuracy = linear_accuracy(subject.model, learnt, tested, draws, how == "paper", ProbeSettings(optimiser))
    numbers = {
        "linear_accuracy": accuracy,
        "linear_train_images": len(learnt.classes),
        "linear_test_images": len(tested.classes),
    }
    return Measure(numbers, f"{accuracy:.4f}  ({words})")


def preservation(subject: EvalTarget, asked: int | None, sigma: float | None) -> Measure:
    """Measure how often sampled neighbours, drawn around the online projection, keep the class of their image.

    The run's images vote, the test images are the queries; images that are both do not vote.
    """
    alone, config = subject.test is None, subject.model.config
    sigma = config.sections.get(config.method, {}).get("sigma", SIGMA) if sigma is None else sigma
    own = subject.model.online_projections(subject.own_images)
    classes, queries, how = subject.own_classes, own, ONE_OUT
    if not alone:
        bank, queries = own[subject.apart], subject.model.online_projections(subject.test_images)
        how = f"{len(queries):,} test images{subject.shared(len(bank))}"
        own, classes = bank, classes[subject.apart]
    neighbours = subject.neighbours(asked, len(own) - alone)
    draws = generator(config.seed, "psa preservation")
    rates = preservation_rates(Bank(own, classes), queries, sigma, neighbours, draws, leave_one_out=alone)
    mean, spread = float(rates.mean()), float(rates.std())
    numbers = {
        "psa_preservation": mean,
        "psa_preservation_sd": spread,
        "psa_sigma": sigma,
        "psa_neighbours": neighbours,
        "psa_images": len(queries),
        "psa_voters": len(own) - alone,
    }
    return Measure(
        numbers, f"{mean:.4f} ± {spread:.4f}  (σ = {sigma:g}, {REPEATS} draws, {neighbours} neighbours, {how})"
    )
