"""Measure the gain from 100 corrections: images chosen by `propos ask`, at random, and none, at equal training.

On 3,000 Fashion-MNIST images a base run is corrected by a simulated person and continued. The person calls each
cluster by the class that most of its images are of, confirms an asked image whose cluster is called by its class, moves
it to the cluster of its class (the one that holds most of it) where it is not, and splits it off where no cluster is
called so. Labels choose nothing. Results are written as they come; started again, the script resumes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

import propos
from propos.clustering import spherical_kmeans
from propos.evaluation import numbered, scores
from propos.evaluation.questions import choose_questions
from propos.runs import Run
from propos.training.corrections import corrections_of, numbers_of
from propos.training.pinned import pin_images
from sets import published

Row = dict[str, Any]
WAYS = ("ask", "random", "none")


def base_run(out: Path, seed: int, epochs: int) -> Run:
    """Return the run that is corrected, trained unless it is there."""
    images = out / "images.npz"
    if not images.exists():
        source = published("fashion-mnist", 3000)
        np.savez(images, images=source.images, labels=source.labels)
    folder = out / f"base-{seed}"
    if not (folder / "clusters.parquet").exists():
        shutil.rmtree(folder, ignore_errors=True)
        propos.run(images, out=folder, seed=seed, epochs=epochs, report=False, quiet=True)
    return Run.open(folder)


def chosen(run: Run, way: str, count: int, seed: int) -> Int[np.ndarray, " Q"]:
    """Return the rows of the images that are asked about."""
    if way == "none":
        return np.zeros(0, np.int64)
    if way == "random":
        return np.random.default_rng(seed).choice(len(run.table.images), count, replace=False)
    table, prototypes = run.table, run.prototypes
    nobody = np.zeros(len(table.images), bool)
    return choose_questions(run.embeddings, prototypes.vectors, prototypes.ids, table.cluster, nobody, count).rows


def answers(run: Run, rows: Int[np.ndarray, " Q"]) -> list[Row]:
    """Return the edits of the simulated person."""
    assert run.table.label is not None
    classes, cluster, images = numbered(run.table.label), run.table.cluster, run.table.images
    held = np.zeros((len(run.prototypes.ids), classes.max() + 1), int)
    np.add.at(held, (cluster, classes), 1)
    called = held.argmax(axis=1)
    home = {int(called[each]): int(each) for each in np.argsort(held.max(axis=1), kind="stable")}
    edits: list[Row] = []
    for number, row in enumerate(rows.tolist()):
        kind, edit = int(classes[row]), {"v": 1, "id": f"answer-{number}", "images": [images[row]]}
        if called[cluster[row]] == kind:
            edits.append(edit | {"op": "confirm"})
        elif kind in home:
            edits.append(edit | {"op": "move", "into": home[kind]})
        else:
            home[kind] = len(held) + sum(each["op"] == "split" for each in edits)
            edits.append(edit | {"op": "split", "into": home[kind]})
    return edits


def one_step(run: Run) -> Int[np.ndarray, " N"]:
    """Return the clusters of the E-step that takes the answers in, before anything is trained."""
    corrected, images = run.corrected, len(run.table.images)
    if not corrected.edited:
        return run.table.cluster
    _, corrections = corrections_of(corrected, run.table.cluster, np.arange(images))
    assert corrections is not None
    start = torch.from_numpy(corrected.prototypes.vectors[np.argsort(numbers_of(corrected))])
    points = torch.from_numpy(run.embeddings)
    fixed = pin_images(points, corrections, start)
    found = spherical_kmeans(points, len(start), 0, torch.Generator(), previous=start, fixed=fixed)
    return found.labels.numpy()


def measure(out: Path, seed: int, way: str, epochs: int, more: int, count: int) -> Row:
    """Correct a copy of the base run, continue it, and score the result, corrected images and all others separately."""
    base = base_run(out, seed, epochs)
    rows = chosen(base, way, count, seed)
    corrected, learnt = out / f"corrected-{way}-{seed}", out / f"learnt-{way}-{seed}"
    for folder in (corrected, learnt):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base.path, corrected)
    edits = answers(base, rows)
    if edits:
        (corrected / "edits.jsonl").write_text("".join(json.dumps(edit) + "\n" for edit in edits))
    assert base.table.label is not None
    classes, cluster = numbered(base.table.label), one_step(Run.open(corrected))
    begin = time.process_time()
    if more:
        propos.run(earlier=corrected, out=learnt, epochs=more, report=False, quiet=True)
        cluster = Run.open(learnt).corrected.table.cluster
    seconds = time.process_time() - begin
    others = np.setdiff1d(np.arange(len(classes)), rows)
    changed = sum(edit["op"] != "confirm" for edit in edits)
    row = {"way": way, "seed": seed, "epochs": [epochs, more], "asked": len(rows), "changed": changed}
    row |= {"clusters": len(np.unique(cluster)), "seconds": seconds, "base": scores(classes, base.table.cluster)}
    return row | {"all": scores(classes, cluster), "others": scores(classes[others], cluster[others])}


def show(rows: list[Row]) -> None:
    """Print the table of the documentation."""
    print("| images answered for | accuracy (median, all seeds) | of images not asked about | NMI | changed |")
    print("|---|---|---|---|---|")
    for way in WAYS:
        mine = sorted((row for row in rows if row["way"] == way), key=lambda row: row["seed"])
        if mine:
            each = ", ".join(f"{row['all']['accuracy']:.3f}" for row in mine)
            middle = [statistics.median(row[part][name] for row in mine) for part, name in
                      (("all", "accuracy"), ("others", "accuracy"), ("all", "nmi"))]  # fmt: skip
            changes = statistics.median(row["changed"] for row in mine)
            print(f"| {way} | {middle[0]:.3f} ({each}) | {middle[1]:.3f} | {middle[2]:.3f} | {changes} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/corrections"))
    parser.add_argument("--epochs", type=int, default=12, help="of the base run")
    parser.add_argument("--more", type=int, default=3, help="epochs of the continued run; 0: its first E-step alone")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "results.jsonl"
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    lengths = [options.epochs, options.more]
    for seed in range(options.seeds):
        for way in WAYS:
            if any((row["seed"], row["way"], row["epochs"]) == (seed, way, lengths) for row in done):
                continue
            done.append(measure(options.out, seed, way, options.epochs, options.more, options.count))
            with path.open("a") as file:
                print(json.dumps(done[-1]), file=file)
            print(f"{way} seed {seed}: accuracy {done[-1]['all']['accuracy']:.3f}", flush=True)
    show([row for row in done if row["epochs"] == lengths])


if __name__ == "__main__":
    main()
