"""Compare clusterings of a pretrained network's features of photographs: plain k-means, other methods, and ours.

The folder that an image is in is its kind, for scoring alone. Images are looked at once, whatever is made of them then:
its seconds, the processor's, are said first. Results are written as they come; started again, the script
resumes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int

from peers import PEERS
from propos.clustering import spherical_kmeans
from propos.evaluation import scores
from propos.runner import Origin, Request, plan
from propos.training import Silent, train
from propos.training.features import prepare_inputs

Row = dict[str, Any]
Features = Float[np.ndarray, "N D"]
Labels = Int[np.ndarray, " N"]
STARTS = 20  # of plain k-means


def plainly(features: Features, clusters: int, seed: int) -> Labels:
    """Return spherical k-means' clusters of the features as they are."""
    draw = torch.Generator().manual_seed(seed)
    return spherical_kmeans(F.normalize(torch.from_numpy(features), dim=1), clusters, STARTS, draw).labels.numpy()


def after_umap(features: Features, clusters: int, seed: int) -> Labels:
    """Return k-means' clusters of features of length one that UMAP laid out."""
    return PEERS["UMAP + k-means"](F.normalize(torch.from_numpy(features), dim=1).numpy(), clusters, seed)


PLAIN: dict[str, Callable[[Features, int, int], Labels]] = {"k-means": plainly, "UMAP + k-means": after_umap}
TRAINED: dict[str, Row] = {
    "the default": {},
    "TEMI": {"method": "temi"},
    "TURTLE": {"method": "turtle"},
    "TEMI, features not evened out": {"method": "temi", "settings": {"network.whitening": 0.0}},
    "ProPos heads": {"method": "propos"},
    "last stage tuned": {"settings": {"start.learns": "last"}},
}


@contextmanager
def silent(what: str) -> Iterator[Any]:
    """Show nothing of a long piece of work."""
    yield lambda done, total: None


def seen(folder: Path, clusters: int) -> tuple[Features, Labels, float]:
    """Return what the network makes of all images, their kinds, and the processor's seconds where it was made now."""
    begin = time.process_time()  # without that of the processes that decode
    with plan(Request(source=folder, clusters=clusters, origin=Origin(start="pretrained")), "cpu") as planned:
        fed = prepare_inputs(planned.config, planned.source, planned.device, silent)
        kinds = [Path(name).parent.name for name in fed.image_names()]
        return fed.batch(np.arange(len(fed))), np.unique(kinds, return_inverse=True)[1], time.process_time() - begin


def trained(folder: Path, clusters: int, seed: int, asked: Row) -> Labels:
    """Return the clusters of a run of ours."""
    with plan(
        Request(source=folder, clusters=clusters, origin=Origin(start="pretrained"), seed=seed, **asked), "cpu"
    ) as planned:
        return np.asarray(train(planned.config, planned.source, planned.device, Silent()).table.cluster)


def measure(path: Path, folder: Path, ways: list[str], seeds: range, epochs: int | None) -> list[Row]:
    """Return a row for every way and seed, measuring those that the file does not hold yet."""
    done: list[Row] = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    features, truth, seconds = seen(folder, 2)
    clusters = int(truth.max()) + 1
    print(f"{len(features):,} images of {clusters} kinds: looked at in {seconds:.0f} s of the processor", flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    for way in ways:
        for seed in seeds:
            key = {"folder": str(folder), "way": way, "seed": seed, "epochs": epochs}
            if any(key.items() <= row.items() for row in done):
                continue
            begin = time.process_time()
            if way in PLAIN:
                found = PLAIN[way](features, clusters, seed)
            else:
                found = trained(folder, clusters, seed, {"epochs": epochs, **TRAINED[way]})
            row = {**key, "seconds": round(time.process_time() - begin, 1)}
            row |= {name: round(float(value), 4) for name, value in scores(truth, found).items()}
            done.append(row)
            with path.open("a") as file:
                print(json.dumps(row), file=file)
            print(f"{way}, seed {seed}: {row['accuracy']:.3f} / {row['nmi']:.3f}, {row['seconds']} s", flush=True)
    return done


def table(rows: list[Row]) -> Iterator[str]:
    """Yield a table: medians over seeds, of the accuracy also the lowest and the highest."""
    yield "| | seeds | accuracy | NMI | seconds of the processor |\n|---|---|---|---|---|"
    for way, epochs in dict.fromkeys((row["way"], row["epochs"]) for row in rows):
        these = [row for row in rows if (row["way"], row["epochs"]) == (way, epochs)]
        accuracy = sorted(row["accuracy"] for row in these)
        nmi, seconds = (statistics.median(row[key] for row in these) for key in ("nmi", "seconds"))
        middle = f"{statistics.median(accuracy):.3f} ({accuracy[0]:.3f}–{accuracy[-1]:.3f})"
        name = way if epochs is None else f"{way}, {epochs} epochs"
        yield f"| {name} | {len(these)} | {middle} | {nmi:.3f} | {seconds:.1f} |"


def main() -> None:
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ways", nargs="+", choices=[*PLAIN, *TRAINED], default=[*PLAIN, *TRAINED])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, help="of what trains; else its own")
    parser.add_argument("--results", type=Path, default=Path("runs/bench-frozen.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = measure(given.results, given.folder, given.ways, range(given.seeds), given.epochs)
    print("", *table([row for row in rows if row["folder"] == str(given.folder)]), sep="\n")


if __name__ == "__main__":
    main()
