"""Names that are proposed for the clusters of labelled sets, and their distance in WordNet from the true kinds.

Clusters are those of the default, names those of `propos name`. A cluster's true kind is its most frequent label. A
distance counts the steps from kind to kind in WordNet's tree; of several synsets of a word the nearest counts. Labels
score, nothing else. `PROPOS_DATA` is the folder of data sets; WordNet is Debian's package wordnet-base.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Shaped

from propos.common.progress import show_nothing
from propos.data.arrays import ArraySource
from propos.networks import classifier_of
from propos.review.naming import Suggestion, imagenet_words, suggest
from propos.runner import Origin, Request, plan
from propos.training.features import prepare_inputs
from sets import published
from uneven import by_default

SETS = {"cifar-20": (2000, 20), "tiny-imagenet": (1600, 100), "fashion-mnist": (1000, 10)}  # images and clusters
NEAR = 2
# Words of WordNet for labels that are none.
WORDS = {
    "aquatic mammals": "aquatic mammal", "flowers": "flower", "food containers": "container",
    "fruit and vegetables": "produce", "household electrical devices": "home appliance",
    "household furniture": "furniture", "insects": "insect", "large carnivores": "carnivore",
    "large man-made outdoor things": "structure", "large natural outdoor scenes": "geological formation",
    "large omnivores and herbivores": "ungulate", "medium mammals": "mammal",
    "non-insect invertebrates": "invertebrate", "people": "person", "reptiles": "reptile", "small mammals": "rodent",
    "trees": "tree", "vehicles 1": "wheeled vehicle", "vehicles 2": "vehicle",
    "T-shirt/top": "T-shirt", "Trouser": "trouser", "Pullover": "pullover", "Dress": "dress", "Coat": "coat",
    "Sandal": "sandal", "Shirt": "shirt", "Sneaker": "sneaker", "Bag": "bag", "Ankle boot": "boot",
}  # fmt: skip


class WordNet:
    """WordNet's nouns: the synsets of each word, and the kinds above each synset."""

    def __init__(self, path: Path) -> None:
        self.of_word: dict[str, list[int]] = {}
        self.above: dict[int, list[int]] = {}
        for line in path.read_text().splitlines():
            if not line[:8].isdigit():
                continue
            fields = line.split(" ")
            number, last = int(fields[0]), 4 + 2 * int(fields[3], 16)
            for word in fields[4:last:2]:
                self.of_word.setdefault(word.replace("_", " ").lower(), []).append(number)
            pointers = zip(fields[last + 1 :: 4], fields[last + 2 :: 4], strict=False)
            self.above[number] = [int(to) for sign, to in pointers if sign in ("@", "@i")]

    def synsets(self, word: str) -> list[int]:
        """Return the synsets of a word, or of a synset's own name, as in n01443537."""
        return [int(word[1:])] if word[1:].isdigit() else self.of_word.get(word.lower(), [])

    def distance(self, one: str, other: str) -> int | None:
        """Return the fewest steps between two words; None if one of them is unknown."""
        ways = (self._up(number) for number in self.synsets(one)), [self._up(number) for number in self.synsets(other)]
        steps = [a[top] + b[top] for a, b in product(*ways) for top in a.keys() & b.keys()]
        return min(steps, default=None)

    def _up(self, number: int) -> dict[int, int]:
        """Return the steps to every kind above a synset."""
        steps, queue = {number: 0}, [number]
        while queue:
            below = queue.pop(0)
            for kind in self.above[below]:
                if kind not in steps:
                    steps[kind] = steps[below] + 1
                    queue.append(kind)
        return steps


def drawn(name: str, count: int) -> ArraySource:
    """Return images of a set, drawn with seed 0."""
    whole = published(name, 10_000)
    assert whole.labels is not None
    rows = np.sort(np.random.default_rng(0).permutation(len(whole))[:count])
    images = np.ascontiguousarray(whole.batch(rows).transpose(0, 2, 3, 1))
    return ArraySource(images, whole.labels[rows], name, whole.black, whole.white)


def named(source: ArraySource, clusters: int, seed: int) -> tuple[Shaped[np.ndarray, " N"], list[Suggestion]]:
    """Return each image's cluster and the best word for each cluster, sure or not."""
    images = source.batch(np.arange(len(source))).transpose(0, 2, 3, 1)
    with plan(Request(source=images, clusters=clusters, origin=Origin(start="pretrained")), "cpu") as planned:
        fed = prepare_inputs(planned.config, planned.source, planned.device, show_nothing)
        features, classifier = fed.batch(np.arange(len(fed))), classifier_of(planned.config.start)
    assert classifier is not None
    found = by_default(features, clusters, seed)
    logits = torch.from_numpy(features) @ classifier.weight.T + classifier.bias
    sums = np.zeros((clusters, logits.shape[1]))
    np.add.at(sums, found, logits.double().softmax(dim=1).numpy())
    return found, suggest(sums, np.bincount(found, minlength=clusters), imagenet_words())


def report(name: str, source: ArraySource, clusters: int, seed: int, wordnet: WordNet) -> Iterable[str]:
    """Yield a row for each cluster, and the shares that are unsure and near the true kind."""
    found, words = named(source, clusters, seed)
    assert source.labels is not None
    yield f"\n{name}, {len(source):,} images, {clusters} clusters, seed {seed}\n"
    yield "| kind | proposed | looks like it | share | F1 | distance |\n|---|---|---|---|---|---|"
    distances: dict[bool, list[float]] = {True: [], False: []}
    for cluster, word in enumerate(words):
        kinds, counts = np.unique(source.labels[found == cluster], return_counts=True)
        kind, share = str(kinds[counts.argmax()]), counts.max() / counts.sum()
        steps = wordnet.distance(word.word, WORDS.get(kind, kind))
        distances[word.sure].append(np.inf if steps is None else steps)
        shown = kind if wordnet.of_word.get(kind) or not kind[1:].isdigit() else first_word(wordnet, kind)
        proposal = word.word if word.sure else f"unsure ({word.word})"
        evidence = f"{word.agreement:.2f} | {word.share:.2f} | {word.fit:.2f}"
        yield f"| {shown} {share:.2f} | {proposal} | {evidence} | {'unknown' if steps is None else steps} |"
    for sure, steps in distances.items():
        near = sum(each <= NEAR for each in steps)
        yield f"\n{'named' if sure else 'unsure'}: {len(steps)} of {clusters}; word within {NEAR} of the kind: {near}"


def first_word(wordnet: WordNet, synset: str) -> str:
    """Return the first word of a synset."""
    number = int(synset[1:])
    return next(word for word, numbers in wordnet.of_word.items() if number in numbers)


def main() -> None:
    """Print a table for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nouns", type=Path, help="WordNet's data.noun")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    given = parser.parse_args()
    torch.set_num_threads(1)
    wordnet = WordNet(given.nouns)
    for name in given.sets:
        count, clusters = SETS[name]
        source = drawn(name, count)
        for seed in given.seeds:
            print(*report(name, source, clusters, seed, wordnet), sep="\n", flush=True)


if __name__ == "__main__":
    main()
