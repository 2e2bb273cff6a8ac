"""Batches of runs: each is trained once, even by several processes, and resumed where it was stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from propos.common.errors import InputError, Interrupted, RunFailed
from propos.distributed import rank, world_size
from propos.runner.decision import Decision
from propos.runner.execute import execute_plan
from propos.runner.planner import plan_resumed
from propos.runner.progress import Reporter, SilentReporter, Stopping, never_stop
from propos.runner.ranks import follow_first_process
from propos.runner.resource_usage import reset_peak_memory
from propos.runs import FolderLocked, Run, refuse_if_locked

Say = Callable[[str], object]


@dataclass(frozen=True)
class TrainingOptions:
    """The device, progress reporter and stop signal with which runs are trained."""

    device: str = "auto"
    reporter: Reporter | None = None
    stopping: Stopping = never_stop
    say: Say = lambda text: None
    warn: Say = lambda text: None  # without a reporter


@dataclass(frozen=True)
class Job:
    """A run to train: its folder, its name, how it is planned, and what follows when it is finished."""

    folder: Path
    name: str
    planned: Callable[[Reporter], Decision]
    afterwards: Callable[[], object] = lambda: None


def is_finished(folder: Path) -> bool:
    """Return whether a run folder has results."""
    return (folder / "run.json").is_file() and Run.open(folder).finished


def finished_run(folder: Path) -> Run | None:
    """Open a run folder if it has results; return None if it has none, or is being written."""
    if not (folder / "run.json").is_file():
        return None
    try:
        run = Run.open(folder)
    except InputError:
        return None
    return run if run.finished else None


def follow_all_runs(data: Path | None, stopping: Stopping) -> None:
    """Follow the first process from run to run until it ends; the first process returns at once."""
    while rank() > 0:
        follow_first_process(data, stopping)


def run_jobs(jobs: Sequence[Job], options: TrainingOptions, data: Path | None = None) -> list[str]:
    """Train the runs that are not finished; return one sentence for each that failed.

    Runs that another process trains are skipped, and tried again at the end. Under torchrun the first process decides,
    and the others follow it.
    """
    follow_all_runs(data, options.stopping)
    problems: list[str] = []
    for again in (False, True):
        left = []
        for number, job in enumerate(jobs, start=1):
            try:
                _execute(job, options, data, f"[{number}/{len(jobs)}]")
                job.afterwards()
            except FolderLocked as error:
                left.append(job)
                if again:
                    problems.append(str(error))
            except Interrupted:
                raise Interrupted("stopped; finished runs are kept: run the same command again to continue") from None
            except (InputError, RunFailed) as error:
                if world_size() > 1 and isinstance(error, RunFailed):
                    raise  # the other processes have ended as well
                problems.append(f"{job.name}: {error}")
        jobs = left
    return problems


def _execute(job: Job, options: TrainingOptions, data: Path | None, where: str) -> None:
    if is_finished(job.folder):
        return
    refuse_if_locked(job.folder)  # before any image is read
    reset_peak_memory()
    options.say(f"{where} {job.name}")
    reporter = options.reporter or SilentReporter(warn=options.warn)
    started = (job.folder / "run.json").is_file()
    resumed = plan_resumed(Run.open(job.folder), options.device, reporter, data) if started else None
    with resumed or job.planned(reporter) as decision:
        execute_plan(decision, job.folder, reporter, options.stopping)
