"""Calibrated confidence: the probability that a label is right, fitted to answers about a random sample.

The log odds of a right label are a line in the log odds of the confidence and in the disagreement of k-means' restarts
(`restarts.py`), with an offset for each cluster. Offsets and the effect of disagreement are drawn towards zero (a
normal prior of standard deviation 1), so a cluster has one of its own only where it has enough answers. The slope is
drawn towards 1, on a logarithmic scale, in the same way. One more answer, half right and half wrong, keeps
probabilities below 1 where every answer was right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

FEWEST = 30  # answers
SCALE = 4  # a quarter of the restarts counts as one
MOST = 1 - 1e-4  # confidences beyond differ by rounding alone


@dataclass(frozen=True)
class Calibration:
    """A line in the log odds of the confidence and in disagreement, and the offset of each cluster that had answers."""

    slope: float
    effect: float  # of a disagreement of 1 / SCALE
    intercept: float
    offsets: dict[int, float]

    def probability(
        self,
        confidence: Float[np.ndarray, " N"],
        cluster: Int[np.ndarray, " N"],
        disagreement: Float[np.ndarray, " N"],
    ) -> Float[np.ndarray, " N"]:
        """Return the probability that each label is right."""
        from scipy.special import expit  # imported only when needed: a server starts without it

        ids, place = np.unique(cluster, return_inverse=True)
        offset = np.array([self.offsets.get(each, 0.0) for each in ids.tolist()])[place]
        probability: Float[np.ndarray, " N"] = expit(
            self.slope * _log_odds(confidence) + self.effect * SCALE * disagreement + self.intercept + offset
        )
        return probability


def calibrate(
    confidence: Float[np.ndarray, " n"],
    cluster: Int[np.ndarray, " n"],
    disagreement: Float[np.ndarray, " n"],
    right: Bool[np.ndarray, " n"],
) -> Calibration:
    """Fit probabilities to answers about a random sample, which should be FEWEST at least."""
    from scipy.optimize import minimize
    from scipy.special import expit

    ids, place = np.unique(cluster, return_inverse=True)
    score, sign = _log_odds(confidence), np.where(right, 1.0, -1.0)
    middle, apart = float(score.mean()), SCALE * (disagreement - disagreement.mean())

    def loss(values: Float[np.ndarray, " P"]) -> tuple[float, Float[np.ndarray, " P"]]:
        """Return the penalised negative log-likelihood and its gradient."""
        slope, effect, intercept, offsets = np.exp(values[0]), values[1], values[2], values[3:]
        margin = sign * (slope * score + effect * apart + intercept + offsets[place])
        pull, between = -sign * expit(-margin), slope * middle + intercept
        total = -_log_sigmoid(margin).sum() - (_log_sigmoid(between) + _log_sigmoid(-between)) / 2
        extra = expit(between) - 0.5
        gradient = np.concatenate(
            [
                [slope * (pull @ score + extra * middle) + values[0], pull @ apart + effect, pull.sum() + extra],
                np.bincount(place, pull, minlength=len(ids)) + offsets,
            ]
        )
        return float(total + (values[0] ** 2 + effect**2 + offsets @ offsets) / 2), gradient

    found = minimize(loss, np.zeros(3 + len(ids)), jac=True, method="L-BFGS-B").x
    slope, effect, intercept, *offsets = found.tolist()
    intercept -= effect * SCALE * float(disagreement.mean())
    return Calibration(float(np.exp(slope)), effect, intercept, dict(zip(ids.tolist(), offsets, strict=True)))


def calibration_error(probability: Float[np.ndarray, " N"], right: Bool[np.ndarray, " N"], bins: int = 15) -> float:
    """Return the expected calibration error: bins of equally many images, and how far apart their two means are."""
    order = np.argsort(probability, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    return float(sum(len(part) * abs(probability[part].mean() - right[part].mean()) for part in parts) / len(right))


def _log_odds(confidence: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    from scipy.special import logit

    odds: Float[np.ndarray, " N"] = logit(np.clip(confidence.astype(np.float64), 1 - MOST, MOST))
    return odds


def _log_sigmoid(value: Float[np.ndarray, " n"] | float) -> Float[np.ndarray, " n"]:
    logarithm: Float[np.ndarray, " n"] = -np.logaddexp(0.0, -np.asarray(value))
    return logarithm
