"""Batch norm in four shuffled slices, as in the paper, compared with one over the whole batch: CIFAR-10, ResNet-18 at a
quarter of its width, views of 16 px, a fixed short length. Results are written as they come; started again, it resumes.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import torch

from propos.data import find_source
from propos.runner.recipes import build_recipe
from propos.training import Silent, prepare, train

CASES = [("kmeans-pixels", 1), ("byol", 4), ("propos", 1), ("propos", 4), ("byol", 1)]


def run(method: str, groups: int, seed: int, epochs: int) -> dict[str, object]:
    """Train once and return what the last E-step measured."""
    torch.set_num_threads(1)
    source = find_source("cifar-10", data=os.environ.get("PROPOS_DATA")).open(32)
    config = build_recipe("cifar-10-r18", method).with_settings(
        {
            "seed": seed, "views.size": 16, "network.width": 0.25, "network.hidden": 512, "network.dimension": 128,
            "network.bn_groups": groups, "network.shuffle_bn": groups > 1, "network.momentum": 0.99,
            "train.epochs": epochs, "train.batch_size": 128, "train.lr": 0.2, "train.warmup": 1,
            "estep.restarts": 3,
        }
    )  # fmt: skip
    if method == "propos":
        config = config.with_settings({"propos.psl_start": epochs // 2})
    config = prepare(config, source)
    begin = time.process_time()
    last = train(config, source, torch.device("cpu"), Silent()).history[-1]["measures"]
    row: dict[str, object] = {"method": method, "groups": groups, "seed": seed, "epochs": epochs}
    row |= {name: last[name] for name in ("accuracy", "nmi", "ari", "imbalance_ratio")}
    row["spread"] = last["uniformity_std"] / last["uniformity_reference"]
    return row | {"cpu_seconds": time.process_time() - begin}


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/shuffling.jsonl"))
    given = parser.parse_args()
    done = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    known = {(row["method"], row["groups"], row["seed"], row["epochs"]) for row in done}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for method, groups in CASES:
        for seed in range(given.seeds):
            if (method, groups, seed, given.epochs) not in known:
                row = run(method, groups, seed, given.epochs)
                with given.out.open("a") as file:
                    print(json.dumps(row), file=file)
                print(row, flush=True)


if __name__ == "__main__":
    main()
