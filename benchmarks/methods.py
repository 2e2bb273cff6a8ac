"""Every method on small sets at equal processor time, compared with standard clusterings, over some seeds.

What an epoch of a method costs on a set is seen once, by training a few; it is then trained for as many as the time
allows, with its schedule made for that length. Methods with long schedules have hardly begun by then: with
`--seconds 0` all are trained for the epochs of their recipe. Each run has one thread. Costs and results are written as
they come, a line each, in two files side by side; started again, the script resumes. Labels are used for scoring alone,
and it is always the last E-step that is scored.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from peers import PEERS, REPEATS, pixels_of
from propos.config import Config
from propos.data import Source, open_source
from propos.data.arrays import ArraySource
from propos.evaluation import scores
from propos.methods import complete_sections, find_method, method_names, stages_of
from propos.runner import Origin, Request, plan
from propos.runner.recipes import build_recipe
from propos.training import Fitted, Silent, prepare, train
from propos.training.context import BatchContext
from propos.training.e_step import cluster_current_embeddings, embedded_images
from propos.training.estimate import late_state
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.order import epoch_order
from propos.training.probes import recluster
from sets import SETS

Row = dict[str, Any]
Key = tuple[Any, ...]
SCORES = ("accuracy", "nmi", "ari")
KEPT = ("accuracy", "nmi")  # of the other of cluster head and k-means
# Recipes add these to ProPos; as in the paper it is without.
PAPERS = {"propos.contrast_weight": 0.0, "propos.pull_weight": 0.0}
VARIANTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in method_names() if "images" in find_method(name).inputs},
    "propos, as in the paper": ("propos", PAPERS),
}
OURS = ["propos", "propos, as in the paper", *(name for name in VARIANTS if not name.startswith("propos"))]


def run(place: str, name: str, seed: int, seconds: float, epoch: float) -> Row:
    """Cluster a set once and return what came of it; an epoch costs so many seconds, nothing where none is trained."""
    torch.set_num_threads(1)
    source = SETS[place]()
    assert source.labels is not None
    truth = np.unique(source.labels, return_inverse=True)[1]
    row = {"set": place, "method": name, "seed": seed, "time": seconds}
    if name in PEERS:
        begin = time.process_time()
        found = np.asarray(PEERS[name](pixels_of(source), int(truth.max()) + 1, seed), np.int64)
        scored = scores(truth, found)
        return row | {"seconds": time.process_time() - begin} | {key: float(scored[key]) for key in SCORES}
    with plan(_request(source, name, seed), "cpu") as planned:
        config = planned.config
        if epoch and seconds:
            config = config.with_epochs(max(_few(config), int(seconds / epoch)))
        fitted, spent = _timed(config, planned)
        last = fitted.history[-1]["measures"] | _by_kmeans(fitted, truth)
    row |= {"seconds": spent, "recipe": config.recipe} | ({"epochs": config.train.epochs} if epoch else {})
    row |= {key: last[key] for key in (*SCORES, "imbalance_ratio")}
    row["spread"] = last["uniformity_std"] / last["uniformity_reference"]
    way = "kmeans" if "kmeans_nmi" in last else "head"  # what did not decide
    return row | {f"{way}_{key}": last[f"{way}_{key}"] for key in KEPT if f"{way}_{key}" in last}


def _by_kmeans(fitted: Fitted, truth: Int[np.ndarray, " N"]) -> Row:
    """Return the scores of k-means on the embeddings of a run whose cluster head decides; nothing for others."""
    config = fitted.model.config
    stages = stages_of(config)
    if not stages or stages[-1].decides == "k-means":
        return {}
    assert config.clusters is not None
    found = recluster(torch.from_numpy(fitted.embeddings), config.clusters, config).labels
    return {f"kmeans_{key}": float(value) for key, value in scores(truth, found.numpy()).items() if key in KEPT}


def cost(place: str, name: str) -> Row:
    """Return the seconds of the processor that an epoch takes, nothing where none is trained."""
    torch.set_num_threads(1)
    row = {"set": place, "method": name}
    with plan(_request(SETS[place](), name, seed=0), "cpu") as planned:
        if not find_method(planned.config.method).trains:
            return row | {"epoch": 0.0}
        few = planned.config.with_epochs(_few(planned.config))
        spent = min(_timed(few, planned)[1] for _ in range(2))  # the first has much to load
        return row | {"epoch": spent / few.train.epochs}


def _request(source: ArraySource, name: str, seed: int) -> Request:
    method, settings = VARIANTS[name]
    images = source.batch(np.arange(len(source))).transpose(0, 2, 3, 1)
    return Request(
        source=images, method=method, seed=seed, labels=source.labels, origin=Origin(start="scratch"), settings=settings
    )


def _few(config: Config) -> int:
    """Return how many epochs tell what one costs: one in every stage, and not the first alone."""
    return max(2, len(stages_of(config)))


def _timed(config: Config, planned: Any) -> tuple[Fitted, float]:
    begin = time.process_time()
    fitted = train(config, planned.source, torch.device("cpu"), Silent())
    return fitted, time.process_time() - begin


def grown(
    path: Path, work: Callable[..., Row], wanted: Mapping[Key, tuple[Any, ...]], keys: tuple[str, ...], workers: int
) -> dict[Key, Row]:
    """Return every wanted row by its key, doing the work for those that the file does not hold yet."""
    lines = path.read_text().splitlines() if path.exists() else []
    done = {_key(row, keys): row for row in map(json.loads, lines)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file, ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        futures = {pool.submit(work, *given): key for key, given in wanted.items() if key not in done}
        for future in as_completed(futures):
            try:
                row = future.result()
            except Exception as error:  # one method's failure is no reason to lose the others
                print(f"{futures[future]}: {error!r}", flush=True)
                continue
            done[_key(row, keys)] = row
            print(json.dumps(row), file=file, flush=True)
            said = f"an epoch takes {row['epoch']:.2f} s" if "epoch" in row else f"{row['accuracy']:.3f}"
            print(f"{', '.join(map(str, _key(row, keys)))}: {said}", flush=True)
    return {key: done[key] for key in wanted if key in done}


def _key(row: Row, keys: tuple[str, ...]) -> Key:
    return tuple(row[key] for key in keys)


def step_ratios(rounds: int = 15) -> dict[str, float]:
    """Return the median over rounds of each method's time for a late step over BYOL's, all timed in turn."""
    torch.set_num_threads(1)
    source = open_source("digits")
    works = {name: late_step(name, source) for name in method_names() if find_method(name).trains}
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
    """Return a step late in the first stage of a method, every term at work, after an E-step."""
    recipe = build_recipe("digits", method).with_settings(PAPERS if method == "propos" else {})
    learner = build_learner(prepare(complete_sections(recipe), source), source, torch.device("cpu"))
    positions, state = epoch_order(0, 0, learner.schedule)[0], late_state(learner)
    clustered = embedded_images(learner, cluster_current_embeddings(learner, source, 0, None), 0, None)
    learner.method.after_clustering(clustered, BatchContext.of(learner, state))
    return lambda: m_step(learner, source, positions, state)


def table(found: Iterable[Row], names: list[str]) -> Iterator[str]:
    """Yield the lines of a table: mean ± standard deviation over the seeds; seconds and epochs are medians."""
    of: dict[str, list[Row]] = {}
    for row in found:
        of.setdefault(row["method"], []).append(row)
    yield "| method | seeds | accuracy | NMI | ARI | spread | smallest / largest cluster | epochs | processor seconds |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name in names:
        here = of.get(name, [])
        if not here:
            continue
        cells = [_mean(here, key) for key in (*SCORES, "spread", "imbalance_ratio")]
        epochs = "–" if "epochs" not in here[0] else f"{statistics.median(row['epochs'] for row in here):.0f}"
        seconds = statistics.median(row["seconds"] for row in here)
        yield f"| `{name}` | {len(here)} | {' | '.join(cells)} | {epochs} | {seconds:.0f} |"
        for way, said in (("head", "by its cluster head"), ("kmeans", "by k-means on its embeddings")):
            if f"{way}_nmi" in here[0]:
                cells = [_mean(here, f"{way}_{key}") for key in KEPT]
                yield f"| {said} | | {' | '.join(cells)} | | | | | |"


def _mean(found: list[Row], key: str) -> str:
    values = [row[key] for row in found if key in row]
    if not values:
        return "–"
    return f"{statistics.mean(values):.3f}" + (f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else "")


def main() -> None:
    """Measure what is missing and print a table for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["digits", "fashion-mnist 3,000"])
    parser.add_argument("--methods", nargs="+", choices=[*OURS, *VARIANTS, *PEERS], default=[*OURS, *PEERS])
    parser.add_argument(
        "--seconds", type=float, default=45.0, help="of the processor, for each run of ours; 0: the recipe's own epochs"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--results", type=Path, default=Path("runs/bench-methods.jsonl"))
    parser.add_argument("--steps", action="store_true", help="only time a late step of each method against BYOL's")
    arguments = parser.parse_args()
    if arguments.steps:
        print(*(f"{name}: {ratio:.2f}" for name, ratio in step_ratios().items()), sep="\n")
        return
    cells = [
        (place, name, seed, 0.0 if name in PEERS else arguments.seconds)
        for seed in range(arguments.seeds)
        for place in arguments.sets
        for name in arguments.methods
        if not (seed and name in REPEATS)
    ]
    ours = {(place, name): (place, name) for place, name, _, _ in cells if name not in PEERS}
    epochs = arguments.results.with_suffix(".epochs.jsonl")
    costs = grown(epochs, cost, ours, ("set", "method"), arguments.workers)
    seconds = {cell[:2]: 0.0 for cell in cells if cell[1] in PEERS} | {key: row["epoch"] for key, row in costs.items()}
    wanted = {cell: (*cell, seconds[cell[:2]]) for cell in cells if cell[:2] in seconds}
    found = grown(arguments.results, run, wanted, ("set", "method", "seed", "time"), arguments.workers)
    length = f"{arguments.seconds:g} s of processor time" if arguments.seconds else "the recipe's own epochs"
    for place in arguments.sets:
        print(f"\n{place}: {length} a run, one thread each\n")
        print(*table([row for row in found.values() if row["set"] == place], arguments.methods), sep="\n")


if __name__ == "__main__":
    main()
