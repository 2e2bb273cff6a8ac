"""Long-tailed sets: each class keeps fewer images than the one before it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

RATIO = 0.1


def class_sizes(largest: int, classes: int, ratio: float = RATIO) -> list[int]:
    """Return how many images each class keeps: largest · ratio^(i / (K − 1)), class 0 being the head."""
    return [int(largest * ratio ** (number / (classes - 1))) for number in range(classes)]


def long_tail(labels: Int[np.ndarray, " N"], classes: int) -> Int[np.ndarray, " M"]:
    """Return the positions kept, in order: the first images of each class, as many as its place in the tail allows."""
    largest = int(np.bincount(labels, minlength=classes).max())
    kept = [np.flatnonzero(labels == number)[:size] for number, size in enumerate(class_sizes(largest, classes))]
    return np.sort(np.concatenate(kept))
