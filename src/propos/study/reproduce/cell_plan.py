"""Training of cells: each is planned for its budget, and measured once it is finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from propos.runner import Decision, Output, Reporter, Request, plan
from propos.runner.batch import Job, Manner, work_through
from propos.study.reproduce.budgets import Task
from propos.study.reproduce.images import source_of
from propos.study.reproduce.measurements import take_readings
from propos.study.reproduce.paths import Place
from propos.training import choose_device, usual_precision


def train_cells(tasks: Sequence[Task], place: Place, manner: Manner, readings: Mapping[Task, list[str]]) -> list[str]:
    """Train unfinished cells and measure finished ones; return the failures, one sentence each."""
    return work_through([_job(task, place, manner, readings.get(task, [])) for task in tasks], manner, place.root)


def _job(task: Task, place: Place, manner: Manner, readings: Sequence[str]) -> Job:
    return Job(
        place.run(task),
        words(task),
        lambda reporter: planned(task, place, manner.device, reporter),
        lambda: take_readings(readings, task, place, manner.device),
    )


def planned(task: Task, place: Place, device: str, reporter: Reporter | None = None) -> Decision:
    """Return a cell's plan, its images opened, in the precision that is usual on the device."""
    source = source_of(task.images, place.root, place.images)
    config = task.config.with_settings({"train.precision": usual_precision(choose_device(device))})
    request = Request(source=source, config=config, data=place.root, output=Output(command="propos reproduce"))
    return plan(request, device, reporter)


def words(task: Task) -> str:
    """Return a cell's description in one line."""
    setup = task.cell.setup
    changes = "".join(f" {key}={value}" for key, value in setup.changes)
    stand_in = " (stand-in)" if task.images.stand_in else ""
    return f"{setup.data}{stand_in} · {setup.recipe} · {setup.method}{changes} · seed {task.cell.seed}"
