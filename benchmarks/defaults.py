"""The defaults on every set of benchmarks/sets.py, compared with standard clusterings.

"default" is `propos run` with nothing but -k; "paper's losses" is the same without the two losses that the paper does
not have, for the same number of epochs. Where the default clusters features of a pretrained network, the peers get the
same features, and there is nothing to train. Results are written as they come; started again, the script continues
where it stopped. Seconds are processor time. Labels only score.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from peers import PEERS, REPEATS, Labels, Pixels, pixels_of
from propos.common.progress import show_nothing
from propos.data.arrays import ArraySource
from propos.evaluation import scores
from propos.runner import Request, plan
from propos.training import Silent, train
from propos.training.features import prepare_inputs
from sets import SETS

Row = dict[str, Any]
OURS: dict[str, dict[str, float]] = {
    "default": {},
    "paper's losses": {"propos.contrast_weight": 0.0, "propos.pull_weight": 0.0},
}
SHARES = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)


def ours(source: ArraySource, clusters: int, seed: int, settings: dict[str, float]) -> tuple[Labels, Row]:
    """Train with the defaults and some settings; return the clusters, and what was chosen for the images."""
    with plan(request(source, clusters, seed, settings), "cpu") as planned:
        config = planned.config
        fitted = train(config, planned.source, planned.device, Silent())
    curve = [[line["epoch"], line["measures"]["accuracy"]] for line in fitted.history if "accuracy" in line["measures"]]
    chosen: Row = {"recipe": config.recipe, "epochs": config.train.epochs, "size": config.views.size}
    return fitted.table.cluster, {**chosen, "curve": curve}


def request(source: ArraySource, clusters: int, seed: int, settings: dict[str, float]) -> Request:
    """Return the request for the default run on a set."""
    images = source.batch(np.arange(len(source))).transpose(0, 2, 3, 1)
    return Request(source=images, clusters=clusters, seed=seed, settings=settings, labels=source.labels)


def features_of(source: ArraySource) -> Pixels | None:
    """Return the unit features that the default clusters; None where it trains on images."""
    with plan(request(source, 2, 0, {}), "cpu") as planned:
        if planned.config.start.network is None:
            return None
        features = prepare_inputs(planned.config, planned.source, planned.device, show_nothing)
        rows = features.batch(np.arange(len(features))).reshape(len(features), -1)
    unit: Pixels = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def measured(name: str, source: ArraySource, method: str, seed: int) -> Row:
    """Cluster a set once and return its scores, the processor's seconds and what was chosen."""
    assert source.labels is not None
    truth = np.unique(source.labels, return_inverse=True)[1]
    clusters, about = int(truth.max()) + 1, {}
    begin = time.process_time()
    if method in OURS:
        found, about = ours(source, clusters, seed, OURS[method])
    else:
        features = features_of(source)
        found = PEERS[method](pixels_of(source) if features is None else features, clusters, seed)
    seconds = time.process_time() - begin
    scored = scores(truth, np.asarray(found, np.int64))
    row = {"set": name, "method": method, "seed": seed, "seconds": round(seconds, 1)}
    return row | {key: round(float(scored[key]), 4) for key in ("accuracy", "nmi")} | about


def measure(path: Path, names: list[str], methods: list[str], seeds: list[int]) -> list[Row]:
    """Return every row that is wanted, measuring those that the file does not hold yet."""
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(row["set"], row["method"], row["seed"]) for row in done}
    path.parent.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        for name in names:
            missing = [each for each in methods if (name, each, seed) not in known and not (seed and each in REPEATS)]
            source = SETS[name]() if missing else None
            for method in missing:
                assert source is not None
                if OURS.get(method) and features_of(source) is not None:
                    continue  # nothing is trained, so there are no losses to leave out
                row = measured(name, source, method, seed)
                done.append(row)
                with path.open("a") as file:
                    print(json.dumps(row), file=file)
                print(f"{name}, {method}, seed {seed}: {row['accuracy']:.3f} / {row['nmi']:.3f}", flush=True)
    return done


def table(found: Iterable[Row]) -> Iterator[str]:
    """Yield a table of medians over seeds: accuracy / NMI, with the processor's seconds, the best in bold."""
    of: dict[tuple[str, str], list[Row]] = {}
    for row in found:
        of.setdefault((row["set"], row["method"]), []).append(row)
    methods = [*OURS, *PEERS]
    yield f"| images | seeds | {' | '.join(methods)} |"
    yield "|---" * (len(methods) + 2) + "|"
    for name in SETS:
        here = {method: of[name, method] for method in methods if (name, method) in of}
        best = max((_median(rows, "accuracy") for rows in here.values()), default=0.0)
        cells = [_cell(here.get(method, []), best) for method in methods]
        if here:
            yield f"| {name} | {len(here.get('default', []))} | {' | '.join(cells)} |"


def curves(found: Iterable[Row]) -> Iterator[str]:
    """Yield the way up on each set: after shares of the time, in seconds, the median accuracy over seeds."""
    trained = [row for row in found if row["method"] == "default" and len(row["curve"]) > 1]
    yield f"| images | {' | '.join(f'{share:.0%} of the time' for share in SHARES)} |"
    yield "|---" * (len(SHARES) + 1) + "|"
    for name in SETS:
        here = [row for row in trained if row["set"] == name]
        if not here:
            continue
        seconds = _median(here, "seconds")
        after = {share: statistics.median(_reached(row, share) for row in here) for share in SHARES}
        cells = [f"{accuracy:.3f} ({share * seconds:.0f} s)" for share, accuracy in after.items()]
        yield f"| {name} | {' | '.join(cells)} |"


def _reached(row: Row, share: float) -> float:
    """Return the accuracy of the last E-step in a share of a run."""
    return [accuracy for epoch, accuracy in row["curve"] if epoch <= share * row["epochs"]][-1]


def _cell(rows: list[Row], best: float) -> str:
    if not rows:
        return "–"
    accuracy, nmi, seconds = (_median(rows, key) for key in ("accuracy", "nmi", "seconds"))
    both = f"{accuracy:.3f} / {nmi:.3f}"
    return f"{f'**{both}**' if accuracy == best else both} ({seconds:.0f} s)"


def _median(rows: list[Row], key: str) -> float:
    return statistics.median(row[key] for row in rows)


def main() -> None:
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--methods", nargs="+", choices=[*OURS, *PEERS], default=[*OURS, *PEERS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--threads", type=int, help="torch's; else as many as there are cores")
    parser.add_argument("--results", type=Path, default=Path("runs/bench-defaults.jsonl"))
    arguments = parser.parse_args()
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    found = measure(arguments.results, arguments.sets, arguments.methods, arguments.seeds)
    print("", *table(found), "", *curves(found), sep="\n")


if __name__ == "__main__":
    main()
