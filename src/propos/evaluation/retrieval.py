"""Search by example: images in the order of their cosine to some images, or as a classifier of answers orders them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from propos.runs import Vectors

BLOCK = 16_384  # embeddings that are in memory at once
STRENGTH = 1.0  # inverse regularisation of the classifier (scikit-learn's C)
BACKGROUND = 300  # images nobody decided on that count as unwanted
MOST_STEPS, PRECISE = 50, 1e-4  # of Newton's method


@dataclass(frozen=True)
class Direction:
    """A linear score of embeddings; with a bias it is the log-odds that an image is wanted."""

    weight: Float[np.ndarray, " D"]
    bias: float | None = None

    def probabilities(self, scores: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"] | None:
        """Return the probability of each score that this direction gave; None without a classifier."""
        if self.bias is None:
            return None
        odds: Float[np.ndarray, " n"] = 1 / (1 + np.exp(-(scores + self.bias)))
        return odds


def towards(wanted: Float[np.ndarray, "Q D"]) -> Direction:
    """Return the direction of some images' mean: the score of an embedding is its cosine to it."""
    mean = wanted.mean(axis=0, dtype=np.float64)
    return Direction((mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32))


def classify(wanted: Float[np.ndarray, "Q D"], unwanted: Float[np.ndarray, "R D"]) -> Direction:
    """Train a logistic regression that separates wanted from unwanted images, both of equal weight.

    Newton's method on the ridge-penalised loss: importing scikit-learn would take longer than all of it.
    """
    count = len(wanted) + len(unwanted)
    inputs = np.concatenate([wanted, unwanted]).astype(np.float64)
    inputs = np.concatenate([inputs, np.ones((count, 1))], axis=1)
    answers = np.repeat([1.0, 0.0], [len(wanted), len(unwanted)])
    importance = STRENGTH * count / 2 / np.repeat([len(wanted), len(unwanted)], [len(wanted), len(unwanted)])
    ridge = np.append(np.ones(inputs.shape[1] - 1), 1e-6)  # the bias is hardly penalised
    solution = np.zeros(inputs.shape[1])
    for _ in range(MOST_STEPS):
        probability = 1 / (1 + np.exp(-(inputs @ solution)))
        gradient = inputs.T @ (importance * (probability - answers)) + ridge * solution
        curvature = (inputs * (importance * probability * (1 - probability))[:, None]).T @ inputs + np.diag(ridge)
        step = np.linalg.solve(curvature, gradient)
        solution -= step
        if np.abs(step).max() < PRECISE:
            break
    return Direction(solution[:-1].astype(np.float32), float(solution[-1]))


def rank_by_answers(
    embeddings: Vectors, yes: Int[np.ndarray, " Y"], no: Int[np.ndarray, " M"], skip: Bool[np.ndarray, " N"]
) -> Direction:
    """Return the direction that ranks images by a person's answers: by their mean until an image was refused.

    Some images from all over that nobody decided on count as unwanted too: most of them are, and with refused images
    alone, which resemble the wanted ones, nothing would be known of all others.
    """
    wanted = embeddings[yes]
    if len(no) == 0:
        return towards(wanted)
    rest = np.flatnonzero(~skip)
    some = rest[np.linspace(0, len(rest) - 1, min(BACKGROUND, len(rest))).round().astype(np.int64)]
    return classify(wanted, np.concatenate([embeddings[no], embeddings[some]]))


def highest(
    embeddings: Vectors, direction: Direction, count: int, skip: Bool[np.ndarray, " N"] | None = None
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return the rows with the highest scores and these scores, the highest first; equal ones in the order of rows."""
    best, scores = np.empty(0, np.int64), np.empty(0, np.float32)
    for start in range(0, len(embeddings), BLOCK):
        here = embeddings[start : start + BLOCK] @ direction.weight
        rows = np.arange(start, start + len(here))
        if skip is not None:
            kept = ~skip[rows]
            rows, here = rows[kept], here[kept]
        best, scores = np.concatenate([best, rows]), np.concatenate([scores, here])
        if len(best) > count:
            top = np.sort(np.argpartition(-scores, count)[:count])
            best, scores = best[top], scores[top]
    order = np.argsort(-scores, kind="stable")
    return best[order], scores[order]
