"""`propos reproduce`: the paper's tables and figures, each one command."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from propos.cli.streams import say

if TYPE_CHECKING:
    from propos.study.reproduce.paths import ReproducePaths
    from propos.study.reproduce.reproduction import ReproduceRequest


def reproduce(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="table-6, figure-3, …, or all; without it they are listed.")
    ] = None,
    budget: Annotated[
        Literal["tiny", "small", "paper"],
        typer.Option(help="tiny: minutes on a CPU; small: a reduced study; paper: the paper's own settings."),
    ] = "tiny",
    version: Annotated[
        Literal["text", "released"],
        typer.Option(
            "--as", help="With budget paper: the settings of the paper's text, or of the authors' released code."
        ),
    ] = "text",
    precision: Annotated[
        Literal["float32", "bfloat16", "float16"], typer.Option(help="Precision of the backbone, on every device.")
    ] = "float32",
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Number of runs of each cell, from seed 0.")] = 3,
    data: Annotated[Path | None, typer.Option(help="Folder of data sets (default: PROPOS_DATA).")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Output folder (default: reproduce-BUDGET).")] = None,
    cells: Annotated[
        str, typer.Option(metavar="3/8", help="Train only this share of the cells, such as 3/8: the third of eight.")
    ] = "1/1",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be trained; train nothing.")] = False,
    train: Annotated[
        bool, typer.Option("--train/--no-train", help="Rebuild the outputs from finished runs; train nothing.")
    ] = True,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings and errors.")] = False,
) -> None:
    """Reproduce the paper's tables and figures, and compare ours with the paper's."""
    from propos.cli.threads import set_wait_policy

    share = read_share(cells)
    set_wait_policy()
    from propos.data import data_root
    from propos.study.reproduce.budgets import Budget
    from propos.study.reproduce.items import ITEMS, find_items
    from propos.study.reproduce.paths import ReproducePaths
    from propos.study.reproduce.reproduction import ReproduceRequest

    trained = Budget(budget, version, precision)
    paths = ReproducePaths(out or Path(trained.folder), data_root(data))
    request = ReproduceRequest(find_items(ids or list(ITEMS)), trained, seeds, share)
    if not ids or dry_run:
        from propos.study.reproduce.lists import list_cells, list_items

        for line in list_cells(request, paths) if ids else list_items(request, paths, device):
            say(line)
        return
    run_on_terminal(request, paths, device, quiet, train)


def read_share(text: str) -> tuple[int, int]:
    """Read 3/8 as the third of eight shares."""
    from propos.common.errors import InputError

    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip(), flags=re.ASCII)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"--cells {text[:40]}: write which of how many shares, as in --cells 3/8")
    return int(match[1]), int(match[2])


def run_on_terminal(
    request: ReproduceRequest, paths: ReproducePaths, device: str, quiet: bool, train: bool = True
) -> None:
    """Train and write a reproduction, and show it on the terminal."""
    from propos.cli.display import Terminal
    from propos.cli.stopping import stop_on_signals
    from propos.common.errors import RunFailed
    from propos.distributed import join_process_group, rank
    from propos.runner.batch import TrainingOptions
    from propos.study.reproduce.reproduction import reproduce

    # Only rank 0 prints.
    with join_process_group(), Terminal(quiet or rank() > 0, mute=rank() > 0) as terminal:

        def stopping() -> AbstractContextManager[Callable[[], bool]]:
            return stop_on_signals(terminal)

        # Runs of seconds need no progress.
        reporter = None if request.budget.size == "tiny" else terminal
        problems = reproduce(request, paths, TrainingOptions(device, reporter, stopping, terminal.note), train)
        terminal.note(f"Written: {paths.out / 'index.html'}")
        for problem in problems:
            terminal.warn(problem)
    if problems:
        raise RunFailed(f"{len(problems)} cells are not finished; run the same command again to continue")
