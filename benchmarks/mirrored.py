"""Training with and without mirrored views, in pairs of one seed: does what the images were asked agree with it?

All else is what propos chooses for the images when it learns from them alone, at a share of the usual epochs.
Results are written as they come; started again, the script resumes. Seconds are the processor's.
Labels are used for scoring alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from propos.augment import measure_invariance
from propos.data.arrays import ArraySource
from propos.runner import Origin, Request, plan
from propos.training import Silent, train
from sets import SETS

Row = dict[str, Any]
WAYS = {"mirrored": 0.5, "not mirrored": 0.0}
KEYS = ("set", "way", "seed", "share")


def trained(source: ArraySource, way: str, seed: int, share: float) -> Row:
    """Train one way; return the scores and how long it took."""
    images = source.batch(np.arange(len(source))).transpose(0, 2, 3, 1)
    begin = time.process_time()
    with plan(
        Request(source=images, seed=seed, labels=source.labels, origin=Origin(start="scratch")), "cpu"
    ) as planned:
        epochs = max(2, round(share * planned.config.train.epochs))
        config = planned.config.with_epochs(epochs).with_settings({"views.flip": WAYS[way]})
        last = train(config, planned.source, planned.device, Silent()).history[-1]["measures"]
    row = {"way": way, "seed": seed, "share": share, "epochs": epochs}
    row |= {key: round(last[key], 4) for key in ("accuracy", "nmi")}
    return row | {"seconds": round(time.process_time() - begin, 1)}


def measure(path: Path, names: list[str], seeds: int, share: float) -> list[Row]:
    """Return every row that is wanted, measuring those that the file does not hold yet."""
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {tuple(row[key] for key in KEYS) for row in done}
    path.parent.mkdir(parents=True, exist_ok=True)
    for seed, name in ((seed, name) for seed in range(seeds) for name in names):
        missing = [way for way in WAYS if (name, way, seed, share) not in known]
        source = SETS[name]() if missing else None
        for way in missing:
            assert source is not None
            row = {"set": name, **trained(source, way, seed, share)}
            done.append(row)
            with path.open("a") as file:
                print(json.dumps(row), file=file)
            print(json.dumps(row), flush=True)
    return [row for row in done if row["share"] == share and row["set"] in names]


def table(found: list[Row]) -> Iterator[str]:
    """Yield a row a set: what was asked, what both ways reached by seed, and whether the two agree."""
    yield "| images | asked | epochs | mirrored | not mirrored | agrees |\n|---|---|---|---|---|---|"
    for name in dict.fromkeys(row["set"] for row in found):
        kept = measure_invariance(SETS[name]())
        asked = "mirrored" if kept is None or kept.flip else "not mirrored"
        of = {way: [row for row in found if (row["set"], row["way"]) == (name, way)] for way in WAYS}
        cells = [", ".join(f"{row['accuracy']:.3f} / {row['nmi']:.3f}" for row in rows) for rows in of.values()]
        ahead = max(WAYS, key=lambda way: statistics.mean(row["nmi"] for row in of[way]))
        epochs = next(iter(of.values()))[0]["epochs"]
        yield f"| {name} | {asked} | {epochs} | {' | '.join(cells)} | {'yes' if ahead == asked else 'no'} |"


def main() -> None:
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--share", type=float, default=0.4, help="of the usual epochs")
    parser.add_argument("--results", type=Path, default=Path("runs/bench-mirrored.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    print("", *table(measure(given.results, given.sets, given.seeds, given.share)), sep="\n")


if __name__ == "__main__":
    main()
