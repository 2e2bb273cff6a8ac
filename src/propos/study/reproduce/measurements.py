"""Measurements that items need beyond what training wrote; each is made once and kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from propos.runs import Run, lock_folder, write_atomically
from propos.study.reproduce import figure_images, run_measurements
from propos.study.reproduce.budgets import Task
from propos.study.reproduce.paths import ReproducePaths

Measure = Callable[
    [Run, Task, ReproducePaths, str], Mapping[str, Any]
]  # the run, its cell, where all is kept, the device

MEASUREMENTS: dict[str, Measure] = {
    "clusters": run_measurements.other_cluster_counts,
    "finer": run_measurements.finer_clusters,
    "validation": run_measurements.validation,
    "clustering": run_measurements.before_last_stage,
    "linear": run_measurements.linear,
    "preservation": run_measurements.preservation,
    "neighbours": figure_images.neighbours,
    "map": figure_images.final_map,
    "moments": figure_images.snapshot_maps,
    "outliers": figure_images.outliers,
}


def take_measurements(names: Sequence[str], task: Task, paths: ReproducePaths, device: str) -> None:
    """Make the missing measurements on a finished cell, one process at a time."""
    missing = [name for name in names if not paths.measurement(task, name).is_file()]
    if not missing:
        return
    with lock_folder(paths.measurement(task, missing[0]).parent):
        for name in missing:
            path = paths.measurement(task, name)
            if not path.is_file():
                found = MEASUREMENTS[name](Run.open(paths.run(task)), task, paths, device)
                write_atomically(path, json.dumps(found, allow_nan=False).encode())
