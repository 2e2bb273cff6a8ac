"""`propos compare`: from methods to cells, their training, and all that is written of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from propos.compare.asking import Cell, Wanted, cells_of
from propos.compare.measuring import Row, row_of
from propos.compare.state import State, planned_state, read_state
from propos.compare.writing import write_figure, write_tables
from propos.runner import Unwatched
from propos.runner.working import Job, Manner, finished_run, follow_all, is_finished, work_through
from propos.runs import waited_for


@dataclass(frozen=True)
class Compared:
    """What a comparison came to: what it is of, its finished cells method by method, and what could not be done."""

    state: State
    rows: list[Row]
    problems: list[str]


class _Rows:
    """The finished cells of a comparison, each read once."""

    def __init__(self, state: State, out: Path) -> None:
        self.state, self.out = state, out
        self.found: dict[Cell, Row] = {}
        self.read_all()

    def read_all(self) -> None:
        for cell in self.state.cells:
            self.read(cell)

    def read(self, cell: Cell) -> None:
        run = None if cell in self.found else finished_run(cell.folder(self.out))
        if run is not None:
            self.found[cell] = row_of(cell, run, f"cells/{run.path.name}")

    def in_order(self) -> list[Row]:
        return [row for method in self.state.methods for cell, row in self.found.items() if cell.method == method]

    def write(self, cell: Cell) -> None:
        """Write the tables as they are once a cell is finished, so that whoever stops then has what is there."""
        self.read(cell)
        with waited_for(self.out / ".writing"):
            write_tables(self.state, self.in_order(), self.out)


def compare(wanted: Wanted, out: Path, manner: Manner) -> Compared:
    """Train what is missing, write all down and return it; what is finished is read, what was stopped goes on."""
    follow_all(wanted.data, manner.stopping)
    state = _planned(wanted, out, manner)
    rows = _Rows(state, out)
    missing = [cell for cell in state.cells if cell not in rows.found and cell.method in wanted.methods]
    problems = work_through([_job(cell, rows, wanted.data, manner) for cell in missing], manner, wanted.data)
    rows.read_all()  # other processes may have finished some
    with waited_for(out / ".writing"):
        write_tables(state, rows.in_order(), out)
        write_figure(state, rows.in_order(), out)
    return Compared(state, rows.in_order(), problems)


def _job(cell: Cell, rows: _Rows, data: Path | None, manner: Manner) -> Job:
    return Job(
        cell.folder(rows.out),
        cell.words,
        lambda watcher: rows.state.planned(cell, data, manner.device, watcher),
        lambda: rows.write(cell),
    )


def _planned(wanted: Wanted, out: Path, manner: Manner) -> State:
    """Plan the methods that the folder does not know yet, and remember them."""
    state = planned_state(wanted, out, manner.device, Unwatched(warn=manner.say))
    out.mkdir(parents=True, exist_ok=True)
    with waited_for(out / ".writing"):
        state.write(out)
    return state


def list_cells(wanted: Wanted, out: Path) -> Iterable[str]:
    """Say of each cell whether it is finished, begun or to do."""
    state, done = read_state(out), 0
    methods = list(dict.fromkeys([*(state.methods if state else []), *wanted.methods]))
    cells = cells_of(methods, max(wanted.seeds, state.seeds if state else 0))
    for cell in cells:
        folder = cell.folder(out)
        finished, begun = is_finished(folder), (folder / "run.json").is_file()
        done += finished
        yield f"{'finished' if finished else 'begun' if begun else 'to do':8}  {cell.words}"
    yield f"{len(cells):,} cells, {done:,} of them finished"
