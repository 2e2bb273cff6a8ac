"""Photographs from scratch: ProPos with and without contrast and pull, for equally many epochs, at equal cost.

Trains `photos` on imagenette and `small-colour` on `--images` of CIFAR-10 (`PROPOS_DATA`), at a share of the epochs
that a run would have. A call measures at most `--rows` rows that the file lacks; started again, it continues. The last
lines are a table of accuracy / NMI, with the processor's seconds. Labels only score.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from propos.evaluation import scores
from propos.runner import Length, Origin, Request, plan
from propos.training import Silent, train

Row = dict[str, Any]
FOLDERS = {"imagenette": "imagenette-160", "cifar-10": "cifar-10"}
VARIANTS: dict[str, dict[str, Any]] = {
    "the paper's losses": {"propos.contrast_weight": 0.0, "propos.pull_weight": 0.0},
    "contrast": {"propos.contrast_weight": 1.0, "propos.pull_weight": 0.0},
    "contrast and pull": {"propos.contrast_weight": 1.0, "propos.pull_weight": 1.0},
    "contrast at 0.2 and pull": {
        "propos.contrast_weight": 1.0,
        "propos.contrast_temperature": 0.2,
        "propos.pull_weight": 1.0,
    },
}


def request(name: str, count: int, variant: str, seed: int, epochs: int | None) -> Request:
    """Return the request for a run from scratch."""
    root, folder = Path(os.environ["PROPOS_DATA"]), FOLDERS[name]
    options: Row = {"clusters": 10, "seed": seed, "settings": VARIANTS[variant], "length": Length(epochs=epochs)}
    options["origin"] = Origin(start="scratch")
    if name == "imagenette":
        return Request(source=root / folder, labels="folders", **options)
    with plan(Request(source=folder, data=root, clusters=10), "cpu") as planned:
        pixels = planned.source.batch(np.arange(count)).transpose(0, 2, 3, 1)
        assert planned.source.labels is not None
        return Request(source=np.ascontiguousarray(pixels), labels=planned.source.labels[:count], **options)


def measured(name: str, count: int, variant: str, seed: int, share: float) -> Row:
    """Train once and return the scores, the processor's seconds and the accuracy on the way."""
    with plan(request(name, count, variant, seed, None), "cpu") as planned:
        epochs = max(4, round(share * planned.config.train.epochs))
    with plan(request(name, count, variant, seed, epochs), "cpu") as planned:
        begin = time.process_time()
        fitted = train(planned.config, planned.source, planned.device, Silent())
        seconds, labels, recipe = time.process_time() - begin, planned.source.labels, planned.config.recipe
    assert labels is not None
    scored = scores(np.unique(labels, return_inverse=True)[1], fitted.table.cluster)
    curve = [
        [line["epoch"], round(line["measures"]["accuracy"], 4)]
        for line in fitted.history
        if "accuracy" in line["measures"]
    ]
    row = {"set": name, "variant": variant, "seed": seed, "share": share, "recipe": recipe, "epochs": epochs}
    row["images"] = len(labels)
    figures = {key: round(float(scored[key]), 4) for key in ("accuracy", "nmi")}
    return row | figures | {"seconds": round(seconds, 1), "curve": curve}


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a table: the median and the range over seeds."""
    of: dict[tuple[str, float, str], list[Row]] = {}
    for row in rows:
        of.setdefault((row["set"], row["share"], row["variant"]), []).append(row)
    yield "| images | share of the epochs | variant | seeds | accuracy | NMI | processor's seconds |"
    yield "|---" * 7 + "|"
    for (name, share, variant), here in sorted(of.items()):
        accuracy, nmi = (_spread(here, key) for key in ("accuracy", "nmi"))
        seconds = statistics.median(row["seconds"] for row in here)
        yield f"| {name} | {share:g} | {variant} | {len(here)} | {accuracy} | {nmi} | {seconds:.0f} |"


def _spread(rows: list[Row], key: str) -> str:
    values = [row[key] for row in rows]
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def main() -> None:
    """Measure what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(FOLDERS), choices=list(FOLDERS))
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    known = {(row["set"], row["variant"], row["seed"], row["share"]) for row in rows}
    wanted = product(options.seeds, options.sets, options.variants)
    missing = [
        (name, variant, seed) for seed, name, variant in wanted if (name, variant, seed, options.share) not in known
    ]
    for name, variant, seed in missing[: options.rows]:
        rows.append(measured(name, options.images, variant, seed, options.share))
        with options.out.open("a") as file:
            print(json.dumps(rows[-1]), file=file)
    print(*table(rows), sep="\n", flush=True)


if __name__ == "__main__":
    main()
