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
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from propos.data import open_source
from propos.methods import METHODS
from propos.recipes import build_recipe
from propos.training import Silent, prepare, train

Row = dict[str, Any]
SCORES = ("accuracy", "nmi", "ari")


def run(method: str, seed: int, epochs: int) -> Row:
    """Train once and return what the last E-step measured."""
    torch.set_num_threads(1)
    source = open_source("digits")
    config = prepare(build_recipe("digits", method).with_epochs(epochs).with_settings({"seed": seed}), source)
    begin = time.perf_counter()
    last = train(config, source, torch.device("cpu"), Silent()).history[-1]
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


def table(found: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a table: mean ± standard deviation over the seeds, seconds as times BYOL's."""
    of: dict[str, list[Row]] = {}
    for row in found:
        of.setdefault(row["method"], []).append(row)
    byol = statistics.median(row["seconds"] for row in of["byol"])
    yield "| method | accuracy | NMI | ARI | spread | smallest / largest cluster | seconds, times BYOL's |"
    yield "|---|---|---|---|---|---|---|"
    for method in METHODS:
        cells = [_mean(of[method], name) for name in (*SCORES, "spread", "imbalance_ratio")]
        seconds = statistics.median(row["seconds"] for row in of[method]) / byol
        yield f"| `{method}` | {' | '.join(cells)} | {seconds:.2f} |"
        if "head_nmi" in of[method][0]:
            by_head = [_mean(of[method], name) for name in ("head_accuracy", "head_nmi")]
            yield f"| by its cluster head | {' | '.join(by_head)} | | | | |"


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
    print(*table(found), sep="\n")


if __name__ == "__main__":
    main()
