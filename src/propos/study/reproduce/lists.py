"""Lists of items and cells before training: data sets on this machine, and hours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from propos.common.durations import duration
from propos.data import benchmark
from propos.runner.batch import is_finished
from propos.study.reproduce.budgets import task
from propos.study.reproduce.cell_plan import describe_task
from propos.study.reproduce.cells import Cell
from propos.study.reproduce.hours import A100, UTILISATION, a100_speed, measure_speed, operations
from propos.study.reproduce.items import Item, timed_setups
from propos.study.reproduce.paths import ReproducePaths
from propos.study.reproduce.reproduction import ReproduceRequest


def list_items(request: ReproduceRequest, paths: ReproducePaths, device: str) -> Iterable[str]:
    """Yield a line per item: its cells, their duration here, its content, and its data sets."""
    fast = measure_speed(device)
    yield f"{'id':10} {'cells':>5} {'here':>12} {'one A100':>9}  shows"
    for item in request.items:
        cells = item.cells(request.seeds)
        whole = _operations(cells, request)
        times = f"{duration(whole / fast):>12} {duration(whole / a100_speed()):>9}"
        yield f"{item.id:10} {len(cells):>5} {times}  {item.shows}; {_sets(item, paths.root)}"
    different = replace(request, items=[item for item in request.items if item.in_paper]).cells()
    whole = _operations(different, request)
    times = f"{duration(whole / fast):>12} {duration(whole / a100_speed()):>9}"
    yield f"{'all':10} {len(different):>5} {times}  the paper's, each cell once"
    yield (
        f"Budget {request.budget}, {request.seeds} seeds. Times: counted operations, without k-means and reading: "
        f"here at {fast / 1e9:,.0f} GFLOP/s, as just measured with a small network; on an A100 at "
        f"{UTILISATION:.0%} of {A100 / 1e12:.0f} TFLOP/s."
    )


def list_cells(request: ReproduceRequest, paths: ReproducePaths) -> Iterable[str]:
    """Yield a line per cell: whether it is finished, would be trained, or lacks its images."""
    tasks = request.tasks(paths.root)
    own = set(request.own(tasks))
    done = 0
    for each in tasks:
        finished = is_finished(paths.run(each))
        done += finished
        state = (
            "finished"
            if finished
            else "data not found"
            if not each.available
            else "to do"
            if each in own
            else "others'"
        )
        yield f"{each.key}  {state:14}  {describe_task(each)}"
    yield f"{len(tasks):,} cells, {done:,} of them finished"


def _operations(cells: Iterable[Cell], request: ReproduceRequest) -> float:
    """Count the operations of cells; all seeds of a set-up take the same number."""
    times = Counter(cell.setup for cell in cells)
    return sum(operations(task(Cell(setup, 0), request.budget, None)) * number for setup, number in times.items())


def _sets(item: Item, root: Path | None) -> str:
    """Return the data sets of an item, and which of them are missing."""
    names = list(dict.fromkeys(setup.set for setup in item.setups)) or list(
        timed_setups() if item.id == "table-7" else ()
    )
    if not names:
        return "no training"
    absent = [name for name in names if root is None or not benchmark(name).folder(root).is_dir()]
    return ", ".join(f"{name} (missing)" if name in absent else name for name in names)
