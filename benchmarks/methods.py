"""Every method on digits at the same length: scores, spread, balance and seconds over three seeds.

Each run has one thread, so that two of them fill two cores without waiting for each other. Results are written as they
come; started again, the script goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from propos.data import Source, open_source
from propos.methods import METHODS
from propos.outputs import Grouping
from propos.recipes import build_recipe
from propos.training import Silent, prepare, train
from propos.training.estimate import late_state
from propos.training.learner import build_learner
from propos.training.maximization import maximization_step
from propos.training.order import epoch_order

Row = dict[str, Any]
SCORES = ("accuracy", "nmi", "ari")
AS_IN_THE_PAPER = {"contrast.weight": 0.0}  # the recipe adds a contrast to ProPos, which would not be compared then


def run(method: str, seed: int, epochs: int) -> Row:
    """Train once and return what the last E-step measured."""
    torch.set_num_threads(1)
    source = open_source("digits")
    config = prepare(
        build_recipe("digits", method).with_epochs(epochs).with_settings({**AS_IN_THE_PAPER, "seed": seed}), source
    )
    begin = time.perf_counter()
    last = train(config, source, torch.device("cpu"), Silent()).history[-1]["measures"]
    row = {"method": method, "seed": seed, "epochs": epochs, "seconds": time.perf_counter() - begin}
    row |= {name: last[name] for name in (*SCORES, "imbalance_ratio")}
    row["spread"] = last["uniformity_std"] / last["uniformity_reference"]
    return row | {name: last[name] for name in ("head_accuracy", "head_nmi") if name in last}


def rows(path: Path, epochs: int, seeds: int, workers: int) -> list[Row]:
    """Return every run's row, training those that the file does not hold yet."""
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(row["method"], row["seed"], row["epochs"]) for row in done}
    wanted = [(method, seed, epochs) for seed in range(seeds) for method in METHODS]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file, ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        futures = [pool.submit(run, *each) for each in wanted if each not in known]
        for future in as_completed(futures):
            row = future.result()
            done.append(row)
            print(json.dumps(row), file=file, flush=True)
            print(f"{row['method']} seed {row['seed']}: accuracy {row['accuracy']:.3f}", flush=True)
    return [row for row in done if (row["method"], row["seed"], row["epochs"]) in set(wanted)]


def step_ratios(rounds: int = 15) -> dict[str, float]:
    """Return the median over rounds of each method's time for a late step over BYOL's, all timed in turn."""
    torch.set_num_threads(1)
    source = open_source("digits")
    works = {name: late_step(name, source) for name in METHODS if not name.startswith("kmeans")}
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - begin)
    byol = times["byol"]
    return {
        name: statistics.median(mine / other for mine, other in zip(own[1:], byol[1:], strict=True))
        for name, own in times.items()
    }


def late_step(method: str, source: Source) -> Callable[[], object]:
    """Return a step of a method late in training, every term at work; finer clusterings are made up."""
    learner = build_learner(
        prepare(build_recipe("digits", method).with_settings(AS_IN_THE_PAPER), source), source, torch.device("cpu")
    )
    positions, state = epoch_order(0, 0, learner.schedule)[0], late_state(learner)
    assert state.partition is not None
    groupings = []
    for clusters in () if learner.stage.further is None else learner.stage.further.clusters:
        centres = F.normalize(torch.randn(clusters, learner.config.network.dimension), dim=1)
        groupings.append(Grouping(torch.arange(len(source)) % clusters, centres, torch.ones(clusters)))
    state.partition = replace(state.partition, groupings=tuple(groupings))
    return lambda: maximization_step(learner, source, positions, state)


def table(found: Iterable[Row], steps: dict[str, float]) -> Iterator[str]:
    """Yield the lines of a table: mean ± standard deviation over the seeds, a step as times BYOL's."""
    of: dict[str, list[Row]] = {}
    for row in found:
        of.setdefault(row["method"], []).append(row)
    yield "| method | accuracy | NMI | ARI | spread | smallest / largest cluster | seconds | a step, times BYOL's |"
    yield "|---|---|---|---|---|---|---|---|"
    for method in METHODS:
        cells = [_mean(of[method], name) for name in (*SCORES, "spread", "imbalance_ratio")]
        seconds = statistics.median(row["seconds"] for row in of[method])
        step = f"{steps[method]:.2f}" if method in steps else "–"
        yield f"| `{method}` | {' | '.join(cells)} | {seconds:.0f} | {step} |"
        if "head_nmi" in of[method][0]:
            by_head = [_mean(of[method], name) for name in ("head_accuracy", "head_nmi")]
            yield f"| by its cluster head | {' | '.join(by_head)} | | | | | |"


def _mean(found: list[Row], name: str) -> str:
    values = [row[name] for row in found]
    spread = statistics.stdev(values) if len(values) > 1 else math.nan
    return f"{statistics.mean(values):.3f} ± {spread:.3f}"


def main() -> None:
    """Train what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--results", type=Path, default=Path("runs/bench-methods.jsonl"))
    arguments = parser.parse_args()
    found = rows(arguments.results, arguments.epochs, arguments.seeds, arguments.workers)
    print(f"\n{arguments.epochs} epochs on 1,797 digits, {arguments.seeds} seeds, one thread a run\n")
    print(*table(found, step_ratios()), sep="\n")


if __name__ == "__main__":
    main()
