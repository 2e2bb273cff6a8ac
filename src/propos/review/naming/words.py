"""The word that fits a cluster best: a class of the network, or a kind that is above several classes in WordNet."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from propos.common.errors import InputError, shown
from propos.common.plain import read_text
from propos.common.plurals import counted

WORDS = "words.json"  # benchmarks/make_words.py writes it
# Chosen on CIFAR-10, imagenette and their mixtures (docs/notebook/names.md), not on the sets that are reported.
AGREES, FITS = 0.35, 0.4
NEARLY = 0.95  # of the best fit: the most specific of such words is taken
MOST_CLASSES = 0.4  # a word over more of the classes tells nothing
MOST_WORDS, LONGEST = 10_000, 100  # of a person's list, and letters of each


@dataclass(frozen=True)
class Vocabulary:
    """Words, the classes under each, and the words that may name a cluster. The first words are the classes."""

    words: tuple[str, ...]
    under: Bool[np.ndarray, "W C"]
    depth: Int[np.ndarray, " W"]  # steps from the top
    names: Bool[np.ndarray, " W"]

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.under.shape[1])

    @classmethod
    def flat(cls, words: list[str]) -> Vocabulary:
        """Return words without kinds above them."""
        count = len(words)
        return cls(tuple(words), np.eye(count, dtype=bool), np.zeros(count, np.int64), np.ones(count, dtype=bool))


@dataclass(frozen=True)
class Suggestion:
    """A word for a cluster, with its evidence."""

    word: str
    agreement: float  # share of the cluster's images that look like the word
    share: float  # of all images that look like the word, the share in this cluster
    examples: tuple[str, ...]  # the most frequent classes under the word

    @property
    def fit(self) -> float:
        """The F1 score of the cluster as the images of the word."""
        return 2 * self.agreement * self.share / (self.agreement + self.share)

    @property
    def sure(self) -> bool:
        """Whether the evidence suffices to propose the word."""
        return self.agreement >= AGREES and self.fit >= FITS

    def evidence(self) -> str:
        """Return the evidence as a sentence."""
        such = f" ({', '.join(self.examples)})" if self.examples else ""
        return (
            f"{self.agreement:.0%} of its images look like {self.word}{such}; "
            f"{self.share:.0%} of all such images are in this cluster"
        )


def suggest(sums: Float[np.ndarray, "K C"], sizes: Int[np.ndarray, " K"], vocabulary: Vocabulary) -> list[Suggestion]:
    """Return the best word for each cluster.

    `sums` are the probabilities of the classes, summed over the images of each cluster. Of the words whose fit is close
    to the best one, the most specific is taken.
    """
    mass = sums @ vocabulary.under.T.astype(np.float64)
    agreement = mass / np.maximum(sizes, 1)[:, None]
    share = mass / np.maximum(mass.sum(axis=0), 1e-12)
    fit = np.where(vocabulary.names, 2 * agreement * share / np.maximum(agreement + share, 1e-12), 0.0)
    chosen = []
    for cluster, fits in enumerate(fit):
        near = np.flatnonzero(fits >= NEARLY * fits.max())
        word = near[np.lexsort((-fits[near], -vocabulary.depth[near]))[0]]
        found = float(agreement[cluster, word]), float(share[cluster, word])
        chosen.append(Suggestion(vocabulary.words[word], *found, _examples(sums[cluster], int(word), vocabulary)))
    return chosen


def _examples(sums: Float[np.ndarray, " C"], word: int, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the two most frequent classes under a word that is none itself."""
    classes = np.flatnonzero(vocabulary.under[word])
    if len(classes) < 2:
        return ()
    first = classes[np.argsort(-sums[classes], kind="stable")[:2]]
    return tuple(vocabulary.words[each] for each in first)


def read_words(path: Path) -> Vocabulary:
    """Read a person's list of words, one a line."""
    lines = (line.strip() for line in read_text(path, 4 * MOST_WORDS * LONGEST).splitlines())
    words = list(dict.fromkeys(line for line in lines if line))
    if not 2 <= len(words) <= MOST_WORDS:
        raise InputError(f"{path}: has {counted(len(words), 'word')}: give from 2 to {MOST_WORDS:,}, one a line")
    for word in words:
        if len(word) > LONGEST or not word.isprintable():
            raise InputError(f"{path}: {shown(word[:LONGEST])} is not a word of up to {LONGEST} letters")
    return Vocabulary.flat(words)


@cache
def imagenet_words() -> Vocabulary:
    """Return the words of ImageNet's 1,000 classes and of the kinds above them, from WordNet 3.0."""
    rows = json.loads((files("propos.review.naming") / WORDS).read_text(encoding="utf-8"))
    above = [parents for _, _, parents, _ in rows]
    classes = 1000
    under = np.zeros((len(rows), classes), dtype=bool)
    for each in range(classes):
        queue = [each]
        while queue:
            word = queue.pop()
            under[word, each] = True
            queue += above[word]
    names = np.array([not general for _, _, _, general in rows]) & (under.mean(axis=1) <= MOST_CLASSES)
    return Vocabulary(tuple(word for _, word, _, _ in rows), under, _depths(above), names)


def _depths(above: list[list[int]]) -> Int[np.ndarray, " W"]:
    @cache
    def depth(word: int) -> int:
        return 1 + max(map(depth, above[word])) if above[word] else 0

    return np.array([depth(word) for word in range(len(above))])
