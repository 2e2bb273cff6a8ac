"""Simulate audits of runs with labels: how often the stated intervals hold, and what calibration does to confidences.

Each simulated review draws its own subset of a run's images, clusters their stored embeddings again with its own seed,
draws images for an audit, and answers by the labels: right is the label that most images of the cluster have. Uneven
sets keep 1 to 1/10 of the classes. Each clustering is audited several times, with other draws, so that a coverage far
from 95% can be told from chance. Nothing is tuned here.

    python benchmarks/trust.py RUN… --reviews 200 --audits 10 --first 0 -o trust.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from sklearn.cluster import KMeans

from propos.evaluation.calibration import calibrate, calibration_error
from propos.evaluation.intervals import Strata, wrong_interval
from propos.evaluation.restarts import disagreement, restart_clusters
from propos.runs import CONFIDENCE_TEMPERATURE, Run
from propos.runs.audit import drawing_order

KEPT = 0.8  # of the images take part in a review
RAREST = 0.1  # share that is kept of the rarest class of an uneven set
DRAWN = (50, 100, 200)
SEEDS = 1_000_003  # between the draws of one clustering


def review(run: Run, seed: int, even: bool, times: int, starts: int) -> dict[str, object]:
    """Simulate audits of several sizes on one clustering."""
    rng = np.random.default_rng(seed)
    assert run.table.label is not None
    _, classes = np.unique(run.table.label, return_inverse=True)
    rows = _subset(classes, rng, even)
    cluster, confidence = _clusters(run.embeddings[rows], classes.max() + 1, seed, starts)
    right, names = _right(cluster, classes[rows]), [run.table.images[row] for row in rows.tolist()]
    apart = disagreement(restart_clusters(run.embeddings[rows], cluster, seed), cluster)
    orders = [drawing_order(names, cluster, seed + turn * SEEDS) for turn in range(times)]
    audits = [
        {
            "audits": [_audit(cluster, right, order[:count]) for order in orders],
            "clusters": _cluster_intervals(cluster, right, orders[0][:count]),
            **_calibration(confidence, cluster, apart, right, orders[0][:count]),
        }
        for count in DRAWN
    ]
    return {"images": len(rows), "right": float(right.mean()), "audits": audits}


def _subset(classes: Int[np.ndarray, " N"], rng: np.random.Generator, even: bool) -> Int[np.ndarray, " n"]:
    shares = np.full(classes.max() + 1, 1.0) if even else RAREST ** np.linspace(0, 1, classes.max() + 1)
    return np.flatnonzero(rng.random(len(classes)) < KEPT * rng.permutation(shares)[classes])


def _clusters(
    embeddings: Float[np.ndarray, "n D"], count: int, seed: int, starts: int
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return clusters, and confidences as a run has them."""
    cluster = KMeans(count, n_init=starts, random_state=seed).fit_predict(embeddings).astype(np.int64)
    prototypes = np.stack([embeddings[cluster == each].mean(axis=0) for each in range(count)])
    prototypes /= np.linalg.norm(prototypes, axis=1, keepdims=True)
    weight = np.exp(embeddings @ prototypes.T / CONFIDENCE_TEMPERATURE)
    return cluster, weight[np.arange(len(cluster)), cluster] / weight.sum(axis=1)


def _right(cluster: Int[np.ndarray, " n"], classes: Int[np.ndarray, " n"]) -> np.ndarray:
    named = np.array([np.bincount(classes[cluster == each]).argmax() for each in range(cluster.max() + 1)])
    return named[cluster] == classes


def _strata(cluster: Int[np.ndarray, " n"], right: np.ndarray, drawn: Int[np.ndarray, " d"]) -> Strata:
    most = int(cluster.max()) + 1
    counts = [np.bincount(each, minlength=most) for each in (cluster, cluster[drawn], cluster[drawn][~right[drawn]])]
    return Strata(*counts)


def _audit(cluster: Int[np.ndarray, " n"], right: np.ndarray, drawn: Int[np.ndarray, " d"]) -> tuple[float, float]:
    """Return on which side of the interval the truth is (0: inside), and the interval's width."""
    low, high = wrong_interval(_strata(cluster, right, drawn))
    wrong = int((~right).sum())
    return float(wrong > high) - float(wrong < low), (high - low) / len(cluster)


def _cluster_intervals(cluster: Int[np.ndarray, " n"], right: np.ndarray, drawn: Int[np.ndarray, " d"]) -> float:
    """Return the share of the clusters' own intervals that hold."""
    strata, each = _strata(cluster, right, drawn), []
    for number in range(len(strata.size)):
        least, largest = wrong_interval(strata.part([number]))
        each.append(bool(least <= (~right[cluster == number]).sum() <= largest))
    return float(np.mean(each))


def _calibration(
    confidence: Float[np.ndarray, " n"],
    cluster: Int[np.ndarray, " n"],
    apart: Float[np.ndarray, " n"],
    right: np.ndarray,
    drawn: Int[np.ndarray, " d"],
) -> dict[str, float]:
    """Return errors on the images that were not drawn: of the confidence, of probabilities, and of one number."""
    fitted = calibrate(confidence[drawn], cluster[drawn], apart[drawn], right[drawn])
    rest = np.setdiff1d(np.arange(len(right)), drawn)
    calibrated = fitted.probability(confidence[rest], cluster[rest], apart[rest])
    return {
        "before": calibration_error(confidence[rest], right[rest]),
        "after": calibration_error(calibrated, right[rest]),
        "brier_before": float(np.mean((confidence[rest] - right[rest]) ** 2)),
        "brier_after": float(np.mean((calibrated - right[rest]) ** 2)),
        "brier_share": float(np.mean((right[drawn].mean() - right[rest]) ** 2)),
    }


def main() -> None:
    """Simulate reviews of each run and write what was found after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--reviews", type=int, default=200)
    parser.add_argument("--audits", type=int, default=10, help="of each clustering")
    parser.add_argument("--starts", type=int, default=10, help="of k-means; the best is used")
    parser.add_argument("--first", type=int, default=0, help="seed of the first review")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    found = {}
    for path in given.runs:
        run = Run.open(path)
        for even in (True, False):
            begin = time.process_time()
            reviews = [
                review(run, given.first + number, even, given.audits, given.starts) for number in range(given.reviews)
            ]
            found[f"{path.name}, {'even' if even else 'uneven'}"] = reviews
            given.output.write_text(json.dumps(found))
            _say(path.name, even, reviews, time.process_time() - begin)


def _say(name: str, even: bool, reviews: list[dict], seconds: float) -> None:
    right = np.mean([each["right"] for each in reviews])
    print(f"{name}, {'even' if even else 'uneven'}: {right:.3f} right, {seconds:.0f} s", flush=True)
    for place, count in enumerate(DRAWN):
        found = [each["audits"][place] for each in reviews]
        side, width = np.array([each["audits"] for each in found]).transpose(2, 0, 1)
        holds = (side == 0).mean(axis=1)
        error = holds.std() / len(holds) ** 0.5
        clusters = np.mean([each["clusters"] for each in found])
        print(
            f"   {count} drawn: holds {(side[:, 0] == 0).mean():.3f} of {len(holds)}, {holds.mean():.4f} "
            f"of {side.size:,} (± {error:.4f}; more wrong {(side > 0).mean():.3f}, fewer {(side < 0).mean():.3f}), "
            f"width {width.mean():.3f}, a cluster's {clusters:.3f}",
            flush=True,
        )
        keys = ("before", "after", "brier_before", "brier_after", "brier_share")
        print("      " + ", ".join(f"{key} {np.mean([each[key] for each in found]):.3f}" for key in keys), flush=True)


if __name__ == "__main__":
    main()
