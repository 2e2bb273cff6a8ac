"""Many runs worked through: each once, whoever else works on them, and gone on with where it was stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from propos.common.errors import InputError, Interrupted, RunFailed
from propos.distributed import rank, world_size
from propos.runner.decision import Decision
from propos.runner.execute import execute_plan
from propos.runner.planning import plan_resumed
from propos.runner.progress import Reporter, SilentReporter, Stopping, never_stop
from propos.runner.ranks import follow
from propos.runner.resource_usage import forget_peak_memory
from propos.runs import Held, Run, refuse_if_held

Say = Callable[[str], object]


@dataclass(frozen=True)
class Manner:
    """How runs are trained: on which device, who watches, and what stops them."""

    device: str = "auto"
    reporter: Reporter | None = None
    stopping: Stopping = never_stop
    say: Say = lambda words: None
    warn: Say = lambda words: None  # where nobody watches


@dataclass(frozen=True)
class Job:
    """A run to be: its folder, what a person calls it, how it is planned, and what is done once it is finished."""

    folder: Path
    words: str
    planned: Callable[[Reporter], Decision]
    afterwards: Callable[[], object] = lambda: None


def is_finished(folder: Path) -> bool:
    """Tell whether a run folder has its results."""
    return (folder / "run.json").is_file() and Run.open(folder).finished


def finished_run(folder: Path) -> Run | None:
    """Open a run folder that has its results; nothing where it has none, or is being made this moment."""
    if not (folder / "run.json").is_file():
        return None
    try:
        run = Run.open(folder)
    except InputError:
        return None
    return run if run.finished else None


def follow_all(data: Path | None, stopping: Stopping) -> None:
    """On all processes of torchrun but the first: follow it from run to run until it leaves."""
    while rank() > 0:
        follow(data, stopping)


def work_through(jobs: Sequence[Job], manner: Manner, data: Path | None = None) -> list[str]:
    """Train what is not finished; return what could not be done, a sentence each.

    What another process trains is left to it, and looked at once more at the end. Of several processes of torchrun the
    first decides, and the others follow it.
    """
    follow_all(data, manner.stopping)
    problems: list[str] = []
    for again in (False, True):
        left = []
        for number, job in enumerate(jobs, start=1):
            try:
                _execute(job, manner, data, f"[{number}/{len(jobs)}]")
                job.afterwards()
            except Held as error:
                left.append(job)
                if again:
                    problems.append(str(error))
            except Interrupted:
                raise Interrupted("stopped; finished runs are kept: run the same command again to continue") from None
            except (InputError, RunFailed) as error:
                if world_size() > 1 and isinstance(error, RunFailed):
                    raise  # the others have left as well
                problems.append(f"{job.words}: {error}")
        jobs = left
    return problems


def _execute(job: Job, manner: Manner, data: Path | None, where: str) -> None:
    if is_finished(job.folder):
        return
    refuse_if_held(job.folder)  # before any image is read
    forget_peak_memory()
    manner.say(f"{where} {job.words}")
    reporter = manner.reporter or SilentReporter(warn=manner.warn)
    begun = (job.folder / "run.json").is_file()
    going_on = plan_resumed(Run.open(job.folder), manner.device, reporter, data) if begun else None
    with going_on or job.planned(reporter) as the_plan:
        execute_plan(the_plan, job.folder, reporter, manner.stopping)
