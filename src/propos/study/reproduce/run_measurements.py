"""Measurements on a finished cell: other numbers of clusters, other images, a linear probe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped

from propos.data import Source, image_digests, positions_not_in
from propos.evaluation import scores
from propos.evaluation.classes import Classes
from propos.evaluation.preservation import Bank, preservation_rates
from propos.methods.seeds import generator
from propos.runner import open_like, open_run_images
from propos.runs import Run
from propos.study.reproduce.budgets import Task
from propos.study.reproduce.images import Images, is_available, source_of
from propos.study.reproduce.items import NUMBERS_OF_CLUSTERS, SIGMAS
from propos.study.reproduce.paths import ReproducePaths
from propos.training import Model, choose_device
from propos.training.probes import LabelledImages, linear_accuracy, probe_draws, recluster

TRAIN_SHARE = 5 / 6  # of CIFAR, whose train images come first
NEIGHBOURS = 20
CLUSTERS_A_CLASS = 25  # 25,000 of ImageNet-1k's 1,000 classes


def other_cluster_counts(run: Run, task: Task, paths: ReproducePaths, device: str) -> dict[str, Any]:
    """Cluster the run's embeddings into other numbers of clusters, and score each."""
    assert run.table.label is not None
    points, found = torch.from_numpy(run.embeddings), {}
    for clusters in NUMBERS_OF_CLUSTERS:
        anew = recluster(points, clusters, run.config)
        found[str(clusters)] = scores(run.table.label, anew.labels.numpy())
    return found


def finer_clusters(run: Run, task: Task, paths: ReproducePaths, device: str) -> dict[str, Any]:
    """Cluster the embeddings into 25 clusters a class, as for PCL's AMI on ImageNet-1k, and score that."""
    assert run.table.label is not None
    wanted = CLUSTERS_A_CLASS * len(np.unique(run.table.label))
    clusters = min(wanted, len(run.embeddings) // 2)
    found = recluster(torch.from_numpy(run.embeddings), clusters, run.config)
    return {**scores(run.table.label, found.labels.numpy()), "clusters": clusters}


def validation(run: Run, task: Task, paths: ReproducePaths, device: str) -> dict[str, Any]:
    """Assign validation images to clusters as the run assigns new images, and score that."""
    return _validated(run, task, paths, device)


def before_last_stage(run: Run, task: Task, paths: ReproducePaths, device: str) -> dict[str, Any]:
    """Score the assignments of validation images by the weights that were kept before the last stage."""
    return _validated(run, task, paths, device, max(run.kept_weights)) if run.kept_weights else {}


def _validated(run: Run, task: Task, paths: ReproducePaths, device: str, snapshot: int | None = None) -> dict[str, Any]:
    images = _validation_images(task, paths)
    if images is None:
        return {}
    model = Model.uncorrected(run, choose_device(device), snapshot)
    with open_like(model.config, source_of(images, paths.root, paths.images), paths.root) as source:
        assert source.labels is not None
        return {**scores(source.labels, model.predict(source).cluster), "images": len(source)}


def linear(run: Run, task: Task, paths: ReproducePaths, device: str) -> dict[str, Any]:
    """Train a linear classifier on the frozen backbone's features of random crops, and test it on validation images.

    It learns from none of the run's images that is among them.
    """
    assert run.table.label is not None
    images = _validation_images(task, paths)
    if images is None:
        return {}
    model = Model.uncorrected(run, choose_device(device))
    known, at = Classes.from_labels(run.table.label), model.encoder.device

    def classified(source: Source, labels: Shaped[np.ndarray, " N"], places: Sequence[int]) -> LabelledImages:
        classes = torch.from_numpy(known.numbers(labels[places])).to(at)
        return LabelledImages(source, torch.tensor(places), classes)

    with (
        open_run_images(run, paths.root) as source,
        open_like(model.config, source_of(images, paths.root, paths.images), paths.root) as tested,
    ):
        assert tested.labels is not None
        learnt = classified(source, run.table.label, positions_not_in(source, tested))
        asked = classified(tested, tested.labels, range(len(tested)))
        accuracy = linear_accuracy(model, learnt, asked, probe_draws(run.config))
        return {"accuracy": accuracy, "images": len(tested), "train_images": len(learnt.classes)}


def _validation_images(task: Task, paths: ReproducePaths) -> Images | None:
    """Return the validation images of a cell's set, as many and as large as it was trained on; None: not here."""
    images = replace(task.images, data=f"{task.cell.setup.set}:val")
    return images if images.stand_in or is_available(images.data, paths.root) else None


def preservation(run: Run, task: Task, paths: ReproducePaths, device: str) -> dict[str, Any]:
    """Measure at each kept epoch, for several σ, how often sampled neighbours keep the class of their image.

    Train images vote, except copies of test images.
    """
    assert run.table.label is not None
    classes = torch.from_numpy(Classes.from_labels(run.table.label).numbers(run.table.label))
    train = round(len(classes) * TRAIN_SHARE)
    found: dict[str, Any] = {}
    with open_run_images(run, paths.root) as source:
        digests = list(image_digests(source))
        tested = set(digests[train:])
        voters = torch.tensor([each for each, digest in enumerate(digests[:train]) if digest not in tested])
        for epoch in sorted(run.kept_weights):
            model = Model.uncorrected(run, choose_device(device), epoch)
            projections = model.online_projections(source).cpu()
            bank, queries = projections[voters], projections[train:]
            found[str(epoch)] = {}
            for sigma in SIGMAS:
                draws = generator(run.config.seed, "psa preservation")
                rates = preservation_rates(Bank(bank, classes[voters]), queries, sigma, NEIGHBOURS, draws)
                found[str(epoch)][f"{sigma:g}"] = {"mean": float(rates.mean()), "sd": float(rates.std())}
    return found
