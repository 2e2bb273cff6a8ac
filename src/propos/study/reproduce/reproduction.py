"""`propos reproduce`: from ids to cells, their training, and all that is written of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from propos.common.errors import InputError
from propos.common.plain import parse_json, read_text
from propos.runner.batch import TrainingOptions
from propos.runs import wait_for_lock, write_atomically
from propos.study.reproduce.assembly import READ, assemble
from propos.study.reproduce.budgets import Budget, Task, task
from propos.study.reproduce.cell_plan import train_cells
from propos.study.reproduce.cells import Cell
from propos.study.reproduce.items import ITEMS, Item
from propos.study.reproduce.output import write_item
from propos.study.reproduce.page import page
from propos.study.reproduce.paths import ReproducePaths
from propos.study.reproduce.results import Results
from propos.study.reproduce.timing import time_all

STATE = "reproduce.json"
TIMED = "table-7"
ABOUT = {
    "tiny": "Trials of minutes on a few hundred images: they show that everything runs, but do not compare methods.",
    "small": "A reduced study: 10,000 images of each set, a narrow network, 20 epochs. Its numbers can be compared "
    "with each other, but not with the paper's, because training is far shorter.",
    "paper": "The paper's own settings.",
}
RELEASED = "The settings of the authors' released code; where it has no configuration, those of the paper's text."


@dataclass(frozen=True)
class ReproduceRequest:
    """The request: items, budget, number of seeds, and the share of the cells to train."""

    items: Sequence[Item]
    budget: Budget
    seeds: int
    share: tuple[int, int] = (1, 1)

    def cells(self) -> list[Cell]:
        """Return the cells of all items, each once."""
        return list(dict.fromkeys(cell for item in self.items for cell in item.cells(self.seeds)))

    def tasks(self, root: Path | None) -> list[Task]:
        """Return the cells as the budget has them trained."""
        return [task(cell, self.budget, root) for cell in self.cells()]

    def own(self, tasks: Sequence[Task]) -> list[Task]:
        """Return the share of the cells that this process trains, without those whose images are missing."""
        number, of = self.share
        return [each for each in tasks[number - 1 :: of] if each.available]


def reproduce(
    request: ReproduceRequest, paths: ReproducePaths, options: TrainingOptions, train: bool = True
) -> list[str]:
    """Train missing cells, write all outputs, and return the failures, one sentence each.

    Without training, the outputs are rebuilt from finished cells.
    """
    _record(request, paths)
    if not train:
        write_all(paths)
        return []
    tasks = request.tasks(paths.root)
    measurements = {
        each: [
            name for item in request.items if each.cell in item.cells(request.seeds) for name in READ.get(item.id, [])
        ]
        for each in tasks
    }
    problems = train_cells(request.own(tasks), paths, options, measurements)
    if request.share[0] == 1 and any(item.id == TIMED for item in request.items):
        problems += time_all(request.budget, paths, options.device, options.say)
    write_all(paths)
    return problems


def _record(request: ReproduceRequest, paths: ReproducePaths) -> None:
    """Record a folder's items and seeds; a folder has one budget."""
    paths.out.mkdir(parents=True, exist_ok=True)
    with wait_for_lock(paths.out / ".writing"):
        known = State.read(paths) or State(request.budget, {})
        if known.budget != request.budget:
            raise InputError(f"{paths.out}: contains a reproduction with budget {known.budget}: choose another --out")
        asked = {item.id: max(request.seeds, known.seeds.get(item.id, 0)) for item in request.items}
        text = json.dumps({**request.budget.plain(), "seeds": known.seeds | asked}, indent=1)
        write_atomically(paths.out / STATE, f"{text}\n".encode())


@dataclass(frozen=True)
class State:
    """The content of reproduce.json: the budget, and the number of seeds of each item."""

    budget: Budget
    seeds: dict[str, int]

    @classmethod
    def read(cls, paths: ReproducePaths) -> State | None:
        """Read it; None if it does not exist."""
        path = paths.out / STATE
        if not path.is_file():
            return None
        state = parse_json(read_text(path), str(path))
        budget = Budget.read(state) if isinstance(state, dict) else None
        seeds = None if budget is None else state.get("seeds")
        counted = isinstance(seeds, dict) and all(type(number) is int and number > 0 for number in seeds.values())
        if budget is None or not isinstance(seeds, dict) or not counted or not seeds.keys() <= ITEMS.keys():
            raise InputError(f"{path}: not written by this version of propos reproduce: choose another --out")
        return cls(budget, seeds)


def write_all(paths: ReproducePaths) -> Path:
    """Write all items of the folder, and the page, one process at a time."""
    with wait_for_lock(paths.out / ".writing"):
        state = State.read(paths)
        assert state is not None
        items = [
            assemble(Results(item, state.seeds[name], state.budget, paths))
            for name, item in ITEMS.items()
            if name in state.seeds
        ]
        for item in items:
            write_item(item, paths.out)
        about = RELEASED if state.budget.version == "released" else ABOUT[state.budget.size]
        write_atomically(paths.out / "index.html", page(items, str(state.budget), [about]).encode())
    return paths.out / "index.html"
