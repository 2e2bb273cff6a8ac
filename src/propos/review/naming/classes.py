"""Class probabilities of a run's images, by the classifier that its pretrained network was trained with."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int

from propos.common.errors import InputError
from propos.common.progress import ShowTask
from propos.data import Source, select_names
from propos.networks import Classifier, classifier_of
from propos.runs import Run
from propos.training import Model
from propos.training.features import features_of

PART = 1024  # images at a time


def has_classifier(run: Run) -> bool:
    """Return whether the words of a run's network are known: where its installed package has its classifier."""
    start = run.config.start
    return start.has_frozen_part and start.learns == "nothing" and classifier_of(start) is not None


def class_sums(
    run: Run, source: Source, ids: list[int], show_task: ShowTask
) -> tuple[Float[np.ndarray, "K C"], Int[np.ndarray, " K"]]:
    """Return the probabilities of all classes, summed over the images of each cluster, and the clusters' sizes."""
    classifier = classifier_of(run.config.start) if has_classifier(run) else None
    if classifier is None:
        raise InputError(
            f"{run.path}: its network knows no words: names need a run that started from an installed "
            "efficientnet-lite network (--start pretrained)"
        )
    frozen = Model.uncorrected(run, torch.device("cpu")).frozen_backbone
    assert frozen is not None
    table = run.corrected.table
    features = features_of(frozen, select_names(source, table.images), torch.device("cpu"), show_task)
    rows = {cluster: row for row, cluster in enumerate(ids)}
    of_image = np.array([rows.get(int(cluster), -1) for cluster in table.cluster])
    sums = np.zeros((len(ids), len(classifier.bias)))
    for start in range(0, len(of_image), PART):
        places = np.arange(start, min(start + PART, len(of_image)))
        kept = of_image[places] >= 0
        np.add.at(sums, of_image[places][kept], _probabilities(classifier, features.batch(places))[kept])
    return sums, np.bincount(of_image[of_image >= 0], minlength=len(ids))


def _probabilities(classifier: Classifier, features: Float[np.ndarray, "B F"]) -> Float[np.ndarray, "B C"]:
    scores = torch.from_numpy(np.ascontiguousarray(features)) @ classifier.weight.T + classifier.bias
    return np.asarray(torch.softmax(scores, dim=1).double().numpy())
