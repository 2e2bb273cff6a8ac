"""`propos reproduce`: from ids to cells, their training, and all that is written of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from propos.common.errors import InputError
from propos.common.plain import parse_json, read_text
from propos.runner.batch import Manner
from propos.runs import waited_for, write_atomically
from propos.study.reproduce.assembling import READ, assemble
from propos.study.reproduce.budgets import BUDGETS, Budget, Task, task
from propos.study.reproduce.cell_plan import train_cells
from propos.study.reproduce.cells import Cell
from propos.study.reproduce.items import ITEMS, Item
from propos.study.reproduce.page import page
from propos.study.reproduce.paths import Place
from propos.study.reproduce.results import Results
from propos.study.reproduce.timing import time_all
from propos.study.reproduce.writing import write_item

STATE = "reproduce.json"
TIMED = "table-7"
ABOUT = {
    "tiny": "Trials of minutes on a few hundred images: they show that everything runs, but do not compare methods.",
    "small": "A reduced study: 10,000 images of each set, a narrow network, 20 epochs. Its numbers can be compared "
    "with each other, but not with the paper's, because training is far shorter.",
    "paper": "The paper's own settings.",
}


@dataclass(frozen=True)
class Wanted:
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
        return [each for each in tasks[number - 1 :: of] if each.there]


def reproduce(wanted: Wanted, place: Place, manner: Manner, train: bool = True) -> list[str]:
    """Train missing cells, write all outputs, and return the failures, one sentence each.

    Without training, the outputs are rebuilt from finished cells.
    """
    _record(wanted, place)
    if not train:
        write_all(place)
        return []
    tasks = wanted.tasks(place.root)
    readings = {
        each: [name for item in wanted.items if each.cell in item.cells(wanted.seeds) for name in READ.get(item.id, [])]
        for each in tasks
    }
    problems = train_cells(wanted.own(tasks), place, manner, readings)
    if wanted.share[0] == 1 and any(item.id == TIMED for item in wanted.items):
        problems += time_all(wanted.budget, place, manner.device, manner.say)
    write_all(place)
    return problems


def _record(wanted: Wanted, place: Place) -> None:
    """Record a folder's items and seeds; a folder has one budget."""
    place.out.mkdir(parents=True, exist_ok=True)
    with waited_for(place.out / ".writing"):
        known = State.read(place) or State(wanted.budget, {})
        if known.budget != wanted.budget:
            raise InputError(f"{place.out}: contains a reproduction with budget {known.budget}: choose another --out")
        asked = {item.id: max(wanted.seeds, known.seeds.get(item.id, 0)) for item in wanted.items}
        text = json.dumps({"budget": wanted.budget, "seeds": known.seeds | asked}, indent=1)
        write_atomically(place.out / STATE, f"{text}\n".encode())


@dataclass(frozen=True)
class State:
    """The content of reproduce.json: the budget, and the number of seeds of each item."""

    budget: Budget
    seeds: dict[str, int]

    @classmethod
    def read(cls, place: Place) -> State | None:
        """Read it; None if it does not exist."""
        path = place.out / STATE
        if not path.is_file():
            return None
        state = parse_json(read_text(path), str(path))
        seeds = state.get("seeds") if isinstance(state, dict) and state.get("budget") in BUDGETS else None
        counted = isinstance(seeds, dict) and all(type(number) is int and number > 0 for number in seeds.values())
        if not isinstance(seeds, dict) or not counted or not seeds.keys() <= ITEMS.keys():
            raise InputError(f"{path}: not written by this version of propos reproduce: choose another --out")
        return cls(state["budget"], seeds)


def write_all(place: Place) -> Path:
    """Write all items of the folder, and the page, one process at a time."""
    with waited_for(place.out / ".writing"):
        state = State.read(place)
        assert state is not None
        items = [
            assemble(Results(item, state.seeds[name], state.budget, place))
            for name, item in ITEMS.items()
            if name in state.seeds
        ]
        for item in items:
            write_item(item, place.out)
        write_atomically(place.out / "index.html", page(items, state.budget, [ABOUT[state.budget]]).encode())
    return place.out / "index.html"
