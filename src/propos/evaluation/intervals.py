"""Intervals for the number of wrong labels, from a random sample of each cluster.

The sample is drawn in proportion to the clusters' sizes, so the number of wrong labels in it is the statistic. For a
supposed total, the number of wrong labels in each cluster's sample is hypergeometric, and the sum has the convolution
of these distributions. The interval holds every total under which the count found, or a more extreme one, has a
probability of at least 2.5% on either side; half of the probability of the count itself is included (mid-P).

How a total is spread over the clusters is unknown. It is spread as their error rates are estimated, each drawn towards
the others the more, the fewer of its images were checked (a beta-binomial model, averaged over its two parameters).
Taking the rates as they were found would make intervals too short where errors are rare: clusters without a wrong image
in the sample would count as free of errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

LEVEL = 0.95
MEANS = np.sin(np.linspace(0.02, np.pi / 2 - 0.02, 60)) ** 2  # error rates, weighted as Jeffreys does
STRENGTHS = np.geomspace(1, 1_000, 15)  # images that the other clusters count as
STEPS = 24  # of bisection, for a shift of log odds between ±40


@dataclass(frozen=True)
class Strata:
    """Clusters from which images were drawn: their sizes, and in the sample the number of images and of wrong ones."""

    size: Int[np.ndarray, " K"]
    drawn: Int[np.ndarray, " K"]
    wrong: Int[np.ndarray, " K"]

    def part(self, rows: Sequence[int]) -> Strata:
        """Return some of the clusters."""
        which = np.asarray(rows, dtype=np.int64)
        return Strata(self.size[which], self.drawn[which], self.wrong[which])


def wrong_interval(strata: Strata, level: float = LEVEL) -> tuple[int, int]:
    """Return the smallest and the largest number of wrong images, among all images, that the sample admits."""
    found, unchecked = int(strata.wrong.sum()), int((strata.size - strata.drawn).sum())
    if strata.drawn.sum() == 0:
        return 0, unchecked
    rates, tail = estimated_rates(strata), (1 - level) / 2
    least = _first(lambda total: _tails(strata, rates, total)[1] > tail, found, found + unchecked)
    most = _first(lambda total: _tails(strata, rates, total)[0] <= tail, found + 1, found + unchecked + 1) - 1
    return least, most


def estimated_rates(strata: Strata) -> Float[np.ndarray, " K"]:
    """Return each cluster's error rate, drawn towards the others the more, the fewer of its images were checked."""
    from scipy.special import betaln  # imported only when needed: a server starts without it

    first, second = MEANS[:, None, None] * STRENGTHS[:, None], (1 - MEANS[:, None, None]) * STRENGTHS[:, None]
    right = strata.drawn - strata.wrong
    likelihood = (betaln(first + strata.wrong, second + right) - betaln(first, second)).sum(axis=2)
    weight = np.exp(likelihood - likelihood.max())[:, :, None]
    rates = (first + strata.wrong) / (first + second + strata.drawn)
    average: Float[np.ndarray, " K"] = (weight * rates).sum(axis=(0, 1)) / weight.sum()
    return average


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest number from `low` for which a growing condition holds; `high` if for none below it."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _tails(strata: Strata, rates: Float[np.ndarray, " K"], total: int) -> tuple[float, float]:
    """Return the probability of at most, and of at least, the wrong images found if there are `total` in all.

    Each includes half of the probability of the very number that was found.
    """
    wrong = spread(total, strata.size, rates)
    probability = np.ones(1)
    for part, count in zip(_hypergeometric(strata, wrong), strata.drawn.tolist(), strict=True):
        probability = np.convolve(probability, part[: count + 1])
    found = int(strata.wrong.sum())
    half = float(probability[found]) / 2
    return float(probability[:found].sum()) + half, float(probability[found + 1 :].sum()) + half


def spread(total: int, size: Int[np.ndarray, " K"], rates: Float[np.ndarray, " K"]) -> Int[np.ndarray, " K"]:
    """Divide a number of wrong images among clusters: the odds of all their error rates change by one factor."""
    from scipy.special import expit, logit

    odds, low, high = logit(rates), -40.0, 40.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if (size * expit(odds + middle)).sum() >= total else (middle, high)
    expected = np.minimum(size * expit(odds + high), size)
    whole = np.floor(expected).astype(np.int64)
    rest = total - int(whole.sum())
    order = np.argsort(whole - expected, kind="stable")  # those that lost most by rounding first
    room = order[whole[order] < size[order]] if rest > 0 else order[whole[order] > 0][::-1]
    whole[room[: abs(rest)]] += np.sign(rest)
    divided: Int[np.ndarray, " K"] = whole
    return divided


def _hypergeometric(strata: Strata, wrong: Int[np.ndarray, " K"]) -> Float[np.ndarray, "K n"]:
    """Return the probability of each number of wrong images in each cluster's sample."""
    count = np.arange(int(strata.drawn.max()) + 1)
    drawn, bad = strata.drawn[:, None], wrong[:, None]
    good = strata.size[:, None] - bad
    possible = (count <= bad) & (drawn - count <= good) & (count <= drawn)
    chosen = np.where(possible, count, np.maximum(0, drawn - good))  # a possible number in place of others
    ways = _log_choose(bad, chosen) + _log_choose(good, drawn - chosen) - _log_choose(bad + good, drawn)
    probabilities: Float[np.ndarray, "K n"] = np.where(possible, np.exp(ways), 0.0)
    return probabilities


def _log_choose(all_of: Int[np.ndarray, ...], chosen: Int[np.ndarray, ...]) -> Float[np.ndarray, ...]:
    """Return the logarithm of a binomial coefficient."""
    from scipy.special import gammaln

    ways: Float[np.ndarray, ...] = gammaln(all_of + 1) - gammaln(chosen + 1) - gammaln(all_of - chosen + 1)
    return ways
