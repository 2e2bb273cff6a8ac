"""`propos compare`: from methods to cells, their training, and all that is written of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from propos.runner import SilentReporter
from propos.runner.batch import Job, Manner, finished_run, follow_all, is_finished, work_through
from propos.runs import waited_for
from propos.study.compare.asking import Cell, Wanted, cells_of
from propos.study.compare.measuring import Row, row_of
from propos.study.compare.state import LOCK, State, planned_state, read_state
from propos.study.compare.writing import write_figure, write_tables


@dataclass(frozen=True)
class Compared:
    """The result of a comparison: its state, its finished cells by method, and failures."""

    state: State
    rows: list[Row]
    problems: list[str]


class _Rows:
    """The finished cells of a comparison, each read once."""

    def __init__(self, state: State, out: Path) -> None:
        self.state, self.out = state, out
        self.found: dict[Cell, Row] = {}
        self.look()

    def look(self) -> None:
        """Read what was finished since, by whichever process."""
        for cell in self.state.cells:
            run = None if cell in self.found else finished_run(cell.folder(self.out))
            if run is not None:
                self.found[cell] = row_of(cell, run, f"cells/{run.path.name}")

    def in_order(self) -> list[Row]:
        """Return them method by method and seed by seed."""
        cells = [Cell(method, seed) for method in self.state.methods for seed in range(self.state.seeds)]
        return [self.found[cell] for cell in cells if cell in self.found]

    def write(self, figure: bool = False) -> None:
        """Write down what is finished by now, also of methods that another process has added meanwhile."""
        with waited_for(self.out / LOCK):
            self.state = read_state(self.out) or self.state
            self.look()
            write_tables(self.state, self.in_order(), self.out)
            if figure:
                write_figure(self.state, self.in_order(), self.out)


def compare(wanted: Wanted, out: Path, manner: Manner) -> Compared:
    """Train missing cells, write and return the results; finished cells are reused, stopped ones resumed."""
    follow_all(wanted.data, manner.stopping)
    planned = planned_state(wanted, out, manner.device, SilentReporter(warn=manner.warn))
    rows = _Rows(planned.remember(wanted, out), out)
    missing = [cell for cell in rows.state.cells if cell not in rows.found and cell.method in wanted.methods]
    problems = work_through([_job(cell, rows, wanted.data, manner) for cell in missing], manner, wanted.data)
    rows.write(figure=True)
    return Compared(rows.state, rows.in_order(), problems)


def _job(cell: Cell, rows: _Rows, data: Path | None, manner: Manner) -> Job:
    return Job(
        cell.folder(rows.out),
        cell.words,
        lambda reporter: rows.state.planned(cell, data, manner.device, reporter),
        rows.write,  # so that whoever stops then has what is there
    )


def list_cells(wanted: Wanted, out: Path) -> Iterable[str]:
    """Yield a line per cell: whether it is finished, started or to do."""
    state = read_state(out)
    if state is not None:
        state.refuse_other(wanted, out)
    methods = list(dict.fromkeys([*(state.methods if state else []), *wanted.methods]))
    shown, done = 0, 0
    for cell in cells_of(methods, max(wanted.seeds, state.seeds if state else 0)):
        folder = cell.folder(out)
        finished, begun = is_finished(folder), (folder / "run.json").is_file()
        if finished or cell.method in wanted.methods:
            shown, done = shown + 1, done + finished
            yield f"{'finished' if finished else 'begun' if begun else 'to do':8}  {cell.words}"
    yield f"{shown:,} cells, {done:,} of them finished"
