"""Cells carried out: each once, whoever else works on the same folder, and gone on with where it was stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from propos.distributed import rank, world_size
from propos.errors import InputError, Interrupted, RunFailed
from propos.reproduce.budgets import Task
from propos.reproduce.images import source_of
from propos.reproduce.place import Place
from propos.reproduce.readings import take_readings
from propos.runner import Plan, Request, Unwatched, Watcher, carry_out, plan, plan_of
from propos.runner.following import follow
from propos.runner.watching import Stopping, unstoppable
from propos.runs import Held, Run, refuse_if_held
from propos.training import choose_device, usual_precision

Say = Callable[[str], object]


@dataclass(frozen=True)
class Manner:
    """How cells are trained: on which device, who watches, and what stops them."""

    device: str = "auto"
    watcher: Watcher | None = None
    stopping: Stopping = unstoppable
    say: Say = lambda words: None


def is_finished(folder: Path) -> bool:
    """Tell whether a run folder has its results."""
    return (folder / "run.json").is_file() and Run.open(folder).finished


def work_through(tasks: Sequence[Task], place: Place, manner: Manner, readings: Mapping[Task, list[str]]) -> list[str]:
    """Train what is not finished and measure what is; return what could not be done, a sentence each.

    What another process trains is left to it, and looked at once more at the end. Of several processes of torchrun the
    first decides, and the others follow it from cell to cell until it leaves.
    """
    if rank() > 0:
        while True:
            follow(place.root, manner.stopping)
    problems: list[str] = []
    for again in (False, True):
        left = []
        for number, task in enumerate(tasks, start=1):
            try:
                _carry_out(task, place, manner, f"[{number}/{len(tasks)}]")
                take_readings(readings.get(task, []), task, place, manner.device)
            except Held as error:
                left.append(task)
                if again:
                    problems.append(str(error))
            except Interrupted:
                raise Interrupted("stopped; what is done is kept, and the same command goes on") from None
            except (InputError, RunFailed) as error:
                if world_size() > 1 and isinstance(error, RunFailed):
                    raise  # the others have left as well
                problems.append(f"{words(task)}: {error}")
        tasks = left
    return problems


def _carry_out(task: Task, place: Place, manner: Manner, where: str) -> None:
    folder = place.run(task)
    if is_finished(folder):
        return
    refuse_if_held(folder)  # before any image is read
    manner.say(f"{where} {words(task)}")
    watcher = manner.watcher or Unwatched()
    begun = (folder / "run.json").is_file()
    going_on = plan_of(Run.open(folder), manner.device, watcher, place.root) if begun else None
    with going_on or planned(task, place, manner.device, watcher) as the_plan:
        carry_out(the_plan, folder, watcher, manner.stopping)


def planned(task: Task, place: Place, device: str, watcher: Watcher | None = None) -> Plan:
    """Return a cell's plan, its images opened, in the precision that is usual on the device."""
    source = source_of(task.images, place.root, place.images)
    config = task.config.with_settings({"train.precision": usual_precision(choose_device(device))})
    request = Request(source, config=config, data=place.root, command="propos reproduce")
    return plan(request, device, watcher)


def words(task: Task) -> str:
    """Name a cell in a line."""
    setup = task.cell.setup
    changes = "".join(f" {key}={value}" for key, value in setup.changes)
    stand_in = " (stand-in)" if task.images.stand_in else ""
    return f"{setup.data}{stand_in} · {setup.recipe} · {setup.method}{changes} · seed {task.cell.seed}"
