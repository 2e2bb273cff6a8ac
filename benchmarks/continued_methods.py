"""Measure methods that continue finished runs: accuracy before and after, by seed.

Every result is written when it comes and every run is kept; started again, the script resumes, inside
a run too. One thread. The base is `propos run` with nothing but -k, which each method continues.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import propos
from propos.runs import Run
from sets import published

Row = dict[str, Any]
SCORES = ("accuracy", "nmi", "ari")
BASE = "propos run"
# What is put on top, and how much longer it trains than the quarter of the epochs that going on takes.
ON_TOP = {"dcboost": 1.0, "scan": 2.0}
SCRATCH = "imagenette, from scratch"
SETS = ("digits", "imagenette", "fashion-mnist", SCRATCH)
OF_IMAGES = ("scan",)  # learns from images, which a pretrained network has replaced by features
FEW = 8  # epochs of photographs from scratch, of the recipe's 100: two minutes of one core
HURTS = 0.002


def finished(out: Path, **request: Any) -> Run:
    """Return a run: the finished one, the stopped one resumed, or a new one."""
    if out.exists() and Run.open(out).finished:
        return Run.open(out)
    again: dict[str, Any] = {"resume": True} if out.exists() else request
    run = propos.run(out=out, quiet=True, report=False, device="cpu", **again)
    assert run is not None
    return run


def images(name: str) -> Row:
    """Return what names the images of a set, and their labels: all, or the first 3,000 of Fashion-MNIST."""
    if name == "digits":
        return {"source": "digits"}
    data = Path(os.environ["PROPOS_DATA"])  # the folder of data sets
    if name in ("imagenette", SCRATCH):
        files = sorted((data / "imagenette-160").rglob("*.JPEG"))  # of train and val, whose kinds are the same
        return {"source": files, "labels": [file.parent.name for file in files]}
    source = published(name, 3000)
    return {"source": source.batch(np.arange(3000))[:, 0], "labels": np.asarray(source.labels)}


def cell(folder: Path, data: str, seed: int, method: str) -> Row:
    """Return the scores of a run or of what is put on top of it, and after each of its stages."""
    begin, base_at = time.process_time(), folder / f"{data}-{seed}"
    alone = {"start": "scratch", "epochs": FEW} if data == SCRATCH else {}
    base = finished(base_at, **images(data), seed=seed, k=10, **alone)
    run = base
    if method != BASE:
        more = max(2, round(ON_TOP[method] * base.config.train.epochs / 4))
        out = folder / f"{data}-{seed}-{method}"
        run = finished(out, **images(data), earlier=base_at, method=method, epochs=more, seed=seed)
    stages: dict[str, float] = {}
    for line in run.history[:-1]:  # what opened the epoch after a stage's last is what that stage left
        stages[line["stage"]] = run.history[line["epoch"] + 1]["measures"].get("accuracy", float("nan"))
    last = run.history[-1]["measures"]
    row: Row = {"set": data, "seed": seed, "method": method, "epochs": len(run.history) - 1}
    row |= {name: round(last[name], 4) for name in SCORES} | {"after each stage": stages}
    return row | {"processor seconds": round(time.process_time() - begin)}


def measure(folder: Path, sets: list[str], seeds: int) -> list[Row]:
    """Return every row, measuring those that the file does not hold yet."""
    path = folder / "continued.jsonl"
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(row["set"], row["seed"], row["method"]) for row in done}
    for data in sets:
        methods = [method for method in (BASE, *ON_TOP) if not (data == "imagenette" and method in OF_IMAGES)]
        for seed, method in ((seed, method) for seed in range(seeds) for method in methods):
            if (data, seed, method) in known:
                continue
            row = cell(folder, data, seed, method)
            done.append(row)
            with path.open("a") as file:
                print(json.dumps(row), file=file)
            print(json.dumps(row), flush=True)
    return done


def verdicts(found: list[Row]) -> Iterator[str]:
    """Yield whether each method, and SCAN's labelling by itself, is worth it: accuracies by seed, before and after."""
    of = {(row["set"], row["seed"], row["method"]): row for row in found}
    for data in SETS:
        for method in ON_TOP:
            pairs = [
                (of[data, seed, BASE]["accuracy"], row)
                for (where, seed, what), row in sorted(of.items())
                if (where, what) == (data, method) and (data, seed, BASE) in of
            ]
            yield from verdict(f"{method} on {data}", [(before, row["accuracy"]) for before, row in pairs])
            halves = [list(row["after each stage"].values()) for _, row in pairs]
            if halves and len(halves[0]) > 1:
                yield from verdict(f"its last stage on {data}", [(each[-2], each[-1]) for each in halves])


def verdict(what: str, pairs: list[tuple[float, float]]) -> Iterator[str]:
    """Yield a line: whether the median after is as high as before, and the pairs."""
    if pairs:
        before, after = (statistics.median(side) for side in zip(*pairs, strict=True))
        word = "ok    " if after >= before - HURTS else "hurts "
        yield f"{word} {what}: " + ", ".join(f"{one:.4f} → {other:.4f}" for one, other in pairs)


def main() -> None:
    """Measure what is missing and print whether anything hurts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/continued"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    print("", *verdicts(measure(arguments.out, arguments.sets, arguments.seeds)), sep="\n")


if __name__ == "__main__":
    main()
