"""Training of cells: each is planned for its budget, and measured once it is finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from propos.runner import Decision, Output, Reporter, Request, plan
from propos.runner.batch import Job, TrainingOptions, run_jobs
from propos.study.reproduce.budgets import Task
from propos.study.reproduce.images import source_of
from propos.study.reproduce.measurements import take_measurements
from propos.study.reproduce.paths import ReproducePaths


def train_cells(
    tasks: Sequence[Task], paths: ReproducePaths, options: TrainingOptions, measurements: Mapping[Task, list[str]]
) -> list[str]:
    """Train unfinished cells and measure finished ones; return the failures, one sentence each."""
    return run_jobs([_job(task, paths, options, measurements.get(task, [])) for task in tasks], options, paths.root)


def _job(task: Task, paths: ReproducePaths, options: TrainingOptions, measurements: Sequence[str]) -> Job:
    return Job(
        paths.run(task),
        describe_task(task),
        lambda reporter: planned(task, paths, options.device, reporter),
        lambda: take_measurements(measurements, task, paths, options.device),
    )


def planned(task: Task, paths: ReproducePaths, device: str, reporter: Reporter | None = None) -> Decision:
    """Return a cell's plan, its images opened."""
    source = source_of(task.images, paths.root, paths.images)
    request = Request(source=source, config=task.config, data=paths.root, output=Output(command="propos reproduce"))
    return plan(request, device, reporter)


def describe_task(task: Task) -> str:
    """Return a cell's description in one line."""
    setup = task.cell.setup
    changes = "".join(f" {key}={value}" for key, value in setup.changes)
    stand_in = " (stand-in)" if task.images.stand_in else ""
    return f"{setup.data}{stand_in} · {setup.recipe} · {setup.method}{changes} · seed {task.cell.seed}"
