"""Count a simulated person's clicks to collect all images of a kind: "more like this" against Review alone.

2,000 images are drawn from imagenette, CIFAR-10 and Tiny ImageNet and clustered by k-means on their pretrained features
(K = 20). Each task is to collect one kind. The person sees pages of 24 images, and at each image errs with a given
probability.

- Review: every cluster's images, least confident first. In the cluster that holds most of the kind, the person
  clicks what does not belong, moves it (2 clicks) and confirms the rest (1); in others, clicks what belongs, moves it
  (2) and confirms the rest. "own cluster" ends after that cluster, "all" after all images.
- More like this: starts from one image (2 clicks), clicks the fewer of those that belong and those that do not on each
  page, and answers (1; the first time 3, to choose the cluster). It ends at the second page on end without
  any that belongs. "nearest only" is the same without the classifier, by the cosine to the mean of what was collected.

Labels decide the person's answers and nothing else. The classifier's strength and background were chosen on seeds 100
to 109; report on others.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped

from features import evened, kept_features
from propos.clustering import spherical_kmeans
from propos.evaluation import retrieval
from propos.evaluation.retrieval import highest, rank_by_answers
from propos.runs import CONFIDENCE_TEMPERATURE

SETS = {"imagenette": 600, "cifar-10": 700, "tiny-imagenet": 700}
CLUSTERS = 20
LEAST = 20  # images of a kind that is a task
PAGE, EXAMPLES = 24, 1_000  # as in web/src/screens/like.ts and similar.ts
WAYS = ("more like this", "nearest only", "review, own cluster", "review, all")
Row = dict[str, Any]


@dataclass(frozen=True)
class Mixed:
    """A clustering of images drawn from several sets."""

    vectors: Float[np.ndarray, "N D"]
    kinds: Shaped[np.ndarray, " N"]
    cluster: Int[np.ndarray, " N"]
    confidence: Float[np.ndarray, " N"]


def mixed(folder: Path, seed: int) -> Mixed:
    """Draw images and cluster them."""
    draw, features, kinds = np.random.default_rng(seed), [], list[str]()
    for name, count in SETS.items():
        here, labels = kept_features(name, folder)
        rows = draw.choice(len(here), count, replace=False)
        features.append(here[rows])
        kinds += [f"{name} {label}" for label in labels[rows].tolist()]
    order = draw.permutation(len(kinds))
    vectors = evened(np.concatenate(features))[order]
    found = spherical_kmeans(torch.from_numpy(vectors), CLUSTERS, 20, torch.Generator().manual_seed(seed))
    weight = np.exp(vectors @ found.centres.numpy().T / CONFIDENCE_TEMPERATURE)
    cluster = found.labels.numpy()
    confidence = (weight / weight.sum(axis=1, keepdims=True))[np.arange(len(cluster)), cluster]
    return Mixed(vectors, np.array(kinds)[order], cluster, confidence)


class Person:
    """Says which images are of a kind, sometimes wrongly, and counts clicks."""

    def __init__(self, wanted: Bool[np.ndarray, " N"], error: float, seed: int) -> None:
        self.wanted, self.clicks, self.pages = wanted, 0, 0
        self.says = wanted ^ (np.random.default_rng(seed).random(len(wanted)) < error)

    def look(self, rows: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        """Return which images of a page the person takes for the kind."""
        self.pages += 1
        said: Bool[np.ndarray, " n"] = self.says[rows]
        return said


def review(run: Mixed, person: Person, everything: bool) -> Bool[np.ndarray, " N"]:
    """Collect in the cluster that holds most of the kind; return what it holds in the end."""
    home = int(np.bincount(run.cluster[person.wanted]).argmax())
    held = run.cluster == home
    for number in [home, *(each for each in range(CLUSTERS) if everything and each != home)]:
        rows = np.flatnonzero(run.cluster == number)
        rows = rows[np.argsort(run.confidence[rows], kind="stable")]
        for start in range(0, len(rows), PAGE):
            page = rows[start : start + PAGE]
            belongs = person.look(page)
            elsewhere = page[~belongs] if number == home else page[belongs]
            person.clicks += 1 + (len(elsewhere) + 2 if len(elsewhere) else 0)
            held[page] = belongs
    return held


def more_like_this(run: Mixed, person: Person, first: int, classifies: bool) -> Bool[np.ndarray, " N"]:
    """Collect from one image on; return what was collected."""
    yes, no, empty = [first], list[int](), 0
    person.clicks += 2
    while empty < 2:
        page = next_page(run, yes, no, classifies)
        if len(page) == 0:
            break
        belongs = person.look(page)
        fewer = min(int(belongs.sum()), int((~belongs).sum()))
        person.clicks += fewer + (3 if len(yes) == 1 else 1)
        yes += page[belongs].tolist()
        no += page[~belongs].tolist()
        empty = 0 if belongs.any() else empty + 1
    held = np.zeros(len(person.wanted), bool)
    held[yes] = True
    return held


def next_page(run: Mixed, yes: list[int], no: list[int], classifies: bool) -> Int[np.ndarray, " n"]:
    """Return the images that the page shows next."""
    skip = np.zeros(len(run.vectors), bool)
    skip[[*yes, *no]] = True
    answers = np.array(no[:EXAMPLES] if classifies else [], np.int64)
    direction = rank_by_answers(run.vectors, np.array(yes[:EXAMPLES]), answers, skip)
    return highest(run.vectors, direction, PAGE, skip)[0]


def tasks(run: Mixed, seed: int, count: int, error: float) -> Iterator[Row]:
    """Collect some kinds in every way, and yield what it cost and brought."""
    kinds, sizes = np.unique(run.kinds, return_counts=True)
    draw = np.random.default_rng(seed)
    for task in draw.choice(kinds[sizes >= LEAST], count, replace=False):
        wanted = run.kinds == task
        first = int(draw.choice(np.flatnonzero(wanted)))
        for way in WAYS:
            person = Person(wanted, error, seed)
            if way.startswith("review"):
                held = review(run, person, way.endswith("all"))
            else:
                held = more_like_this(run, person, first, way == WAYS[0])
            right = int((held & wanted).sum())
            yield {
                "seed": seed,
                "task": str(task),
                "way": way,
                "images": int(wanted.sum()),
                "clicks": person.clicks,
                "pages": person.pages,
                "recall": round(right / int(wanted.sum()), 3),
                "precision": round(right / max(1, int(held.sum())), 3),
            }


def main() -> None:
    """Run the tasks of some seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", type=Path, help="folder that keeps the features of the sets")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tasks", type=int, default=5)
    parser.add_argument("--error", type=float, default=0.02)
    parser.add_argument("--strength", type=float, default=retrieval.STRENGTH)
    given = parser.parse_args()
    retrieval.STRENGTH = given.strength
    rows = [row for seed in given.seeds for row in tasks(mixed(given.features, seed), seed, given.tasks, given.error)]
    for row in rows:
        print(json.dumps(row))
    for way in WAYS:
        own = [row for row in rows if row["way"] == way]
        means = {
            key: round(statistics.mean(row[key] for row in own), 3)
            for key in ("clicks", "pages", "recall", "precision")
        }
        print(f"{way:20} {means}")


if __name__ == "__main__":
    main()
