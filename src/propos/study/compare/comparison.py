"""`propos compare`: from methods to cells, their training, and all that is written of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from propos.runner import SilentReporter
from propos.runner.batch import Job, TrainingOptions, finished_run, follow_all_runs, is_finished, run_jobs
from propos.runs import wait_for_lock
from propos.study.compare.output import write_figure, write_tables
from propos.study.compare.request import Cell, CompareRequest, cells_of
from propos.study.compare.results import Row, read_row
from propos.study.compare.state import LOCK, State, planned_state, read_state


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
                self.found[cell] = read_row(cell, run, f"cells/{run.path.name}")

    def in_order(self) -> list[Row]:
        """Return them method by method and seed by seed."""
        cells = [Cell(method, seed) for method in self.state.methods for seed in range(self.state.seeds)]
        return [self.found[cell] for cell in cells if cell in self.found]

    def write(self, figure: bool = False) -> None:
        """Write down what is finished by now, also of methods that another process has added meanwhile."""
        with wait_for_lock(self.out / LOCK):
            self.state = read_state(self.out) or self.state
            self.look()
            write_tables(self.state, self.in_order(), self.out)
            if figure:
                write_figure(self.state, self.in_order(), self.out)


def compare(request: CompareRequest, out: Path, options: TrainingOptions) -> Compared:
    """Train missing cells, write and return the results; finished cells are reused, stopped ones resumed."""
    follow_all_runs(request.data, options.stopping)
    planned = planned_state(request, out, options.device, SilentReporter(warn=options.warn))
    rows = _Rows(planned.save(request, out), out)
    missing = [cell for cell in rows.state.cells if cell not in rows.found and cell.method in request.methods]
    problems = run_jobs([_job(cell, rows, request.data, options) for cell in missing], options, request.data)
    rows.write(figure=True)
    return Compared(rows.state, rows.in_order(), problems)


def _job(cell: Cell, rows: _Rows, data: Path | None, options: TrainingOptions) -> Job:
    return Job(
        cell.folder(rows.out),
        cell.name,
        lambda reporter: rows.state.planned(cell, data, options.device, reporter),
        rows.write,  # so that a comparison stopped then has the rows that are there
    )


def list_cells(request: CompareRequest, out: Path) -> Iterable[str]:
    """Yield a line per cell: whether it is finished, started or to do."""
    state = read_state(out)
    if state is not None:
        state.refuse_other(request, out)
    methods = list(dict.fromkeys([*(state.methods if state else []), *request.methods]))
    shown, done = 0, 0
    for cell in cells_of(methods, max(request.seeds, state.seeds if state else 0)):
        folder = cell.folder(out)
        finished, begun = is_finished(folder), (folder / "run.json").is_file()
        if finished or cell.method in request.methods:
            shown, done = shown + 1, done + finished
            yield f"{'finished' if finished else 'begun' if begun else 'to do':8}  {cell.name}"
    yield f"{shown:,} cells, {done:,} of them finished"
