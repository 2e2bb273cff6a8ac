"""Measurements that items need beyond what training wrote; each is made once and kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from propos.runs import Run, held, write_atomically
from propos.study.reproduce import figure_images, measuring
from propos.study.reproduce.budgets import Task
from propos.study.reproduce.paths import Place

Take = Callable[[Run, Task, Place, str], Mapping[str, Any]]  # the run, its cell, where all is kept, the device

READINGS: dict[str, Take] = {
    "clusters": measuring.other_numbers,
    "validation": measuring.validation,
    "linear": measuring.linear,
    "preservation": measuring.preservation,
    "neighbours": figure_images.neighbours,
    "map": figure_images.at_the_end,
    "moments": figure_images.at_moments,
    "outliers": figure_images.outliers,
}


def take_readings(names: Sequence[str], task: Task, place: Place, device: str) -> None:
    """Make the missing measurements on a finished cell, one process at a time."""
    missing = [name for name in names if not place.reading(task, name).is_file()]
    if not missing:
        return
    with held(place.reading(task, missing[0]).parent):
        for name in missing:
            path = place.reading(task, name)
            if not path.is_file():
                found = READINGS[name](Run.open(place.run(task)), task, place, device)
                write_atomically(path, json.dumps(found, allow_nan=False).encode())
