"""What methods that build on a trained network add to finished runs of ours: accuracy before and after, by seed.

Results are written as they come, runs are kept; started again, the script goes on where it stopped. One thread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import propos
from propos.runs import Run

Row = dict[str, Any]
SCORES = ("accuracy", "nmi", "ari")
# What is put on top, and how much longer it trains than the quarter of the epochs that going on takes.
ON_TOP = {"dcboost": 1.0, "scan": 2.0}
HURTS = 0.002


def finished(out: Path, **request: Any) -> Run:
    """Return a run: what is there, gone on with where it stopped, or made anew."""
    if out.exists() and Run.open(out).finished:
        return Run.open(out)
    again: dict[str, Any] = {"resume": True} if out.exists() else request
    run = propos.run(out=out, quiet=True, report=False, device="cpu", **again)
    assert run is not None
    return run


def images(name: str, root: Path | None) -> tuple[Any, Any]:
    """Return the images and labels of a set: digits, or the first 3,000 of Fashion-MNIST."""
    if name == "digits":
        return "digits", None
    assert root is not None, "--data says where Fashion-MNIST is"
    from propos.data import open_source

    source = open_source("fashion-mnist:train", data=root)
    assert source.labels is not None
    return source.batch(np.arange(3000))[:, 0], np.asarray(source.labels[:3000])


def measured(run: Run) -> Row:
    """Return what the last E-step of a run measured, its answer being the method's own."""
    last = run.history[-1]["measures"]
    return {name: last[name] for name in SCORES}


def rows(folder: Path, data: str, root: Path | None, seeds: int, epochs: int | None) -> list[Row]:
    """Return the scores of each run and of what is put on top of it."""
    what, labels = images(data, root)
    found: list[Row] = []
    for seed in range(seeds):
        base_at = folder / f"{data}-{seed}"
        base = finished(base_at, source=what, labels=labels, seed=seed, epochs=epochs, k=10)
        row: Row = {"data": data, "seed": seed, "epochs": base.config.train.epochs, "before": measured(base)}
        for method, longer in ON_TOP.items():
            begin, more = time.process_time(), max(2, round(longer * base.config.train.epochs / 4))
            out = folder / f"{data}-{seed}-{method}"
            run = finished(out, source=what, labels=labels, earlier=base_at, method=method, epochs=more, seed=seed)
            stages: dict[str, float] = {}
            for line in run.history[:-1]:  # what opened the epoch after a stage's last is what that stage left
                following = run.history[line["epoch"] + 1]
                stages[line["stage"]] = following["measures"].get("accuracy", float("nan"))
            row[method] = measured(run) | {"epochs": more, "after each stage": stages}
            row[method]["processor seconds"] = round(time.process_time() - begin)
            print(json.dumps({**row, "latest": method}), flush=True)
        found.append(row)
        (folder / f"{data}.json").write_text(json.dumps(found, indent=1))
    return found


def main() -> None:
    """Train what is missing and print whether anything hurts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["digits"], choices=["digits", "fashion-mnist"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs/on-top"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for data in arguments.sets:
        found = rows(arguments.out, data, arguments.data, arguments.seeds, arguments.epochs)
        for method in ON_TOP:
            before, after = ([row[kind]["accuracy"] for row in found] for kind in ("before", method))
            verdict = "ok    " if statistics.median(after) >= statistics.median(before) - HURTS else "hurts "
            pairs = ", ".join(f"{b:.4f} → {a:.4f}" for b, a in zip(before, after, strict=True))
            print(f"{verdict} {method} on {data}: {pairs}")


if __name__ == "__main__":
    main()
