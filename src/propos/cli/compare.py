"""`propos compare`: methods side by side on one source."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli.streams import say

if TYPE_CHECKING:
    from propos.study.compare.request import CompareRequest


def compare(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="Images, as for `propos run`."),
    ],
    methods: Annotated[
        str,
        typer.Option(metavar="A,B,…", help="Methods, separated by commas (see `propos methods`), or all."),
    ] = "propos,byol,simclr,cc,kmeans-pixels",
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Number of runs of each method, from seed 0.")] = 3,
    clusters: Annotated[
        int | None, typer.Option("-k", min=2, help="Number of clusters (default: the number of labels).")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--time", metavar="10m", help="Approximate training time of each run (45s, 10m, 2h).")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Number of epochs of each run.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Output folder (default: compare-SOURCE).")] = None,
    recipe: Annotated[str | None, typer.Option(help="Recipe (see `propos recipes`).")] = None,
    start: Annotated[
        str | None,
        typer.Option(metavar="START", help="Start of all runs: scratch, pretrained or pretrained:NAME."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of all runs; repeatable.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="folders: score against class folders (also inside train, val, test); never used for training."
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of data sets (default: PROPOS_DATA).")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be trained; train nothing.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings, errors and the table.")] = False,
) -> None:
    """Train several methods on the same images for the same time, and compare the results."""
    from propos.cli.threads import set_wait_policy

    set_wait_policy()
    from propos.config import parse_assignments
    from propos.data import find_source
    from propos.runner.request import run_name
    from propos.study.compare.comparison import list_cells
    from propos.study.compare.request import CompareRequest, read_methods

    request = CompareRequest(
        source, read_methods(methods), seeds, budget, epochs, clusters, recipe, start, labels,
        parse_assignments(settings or []), data,
    )  # fmt: skip
    place = out or Path(f"compare-{run_name(source)}")
    if dry_run:
        find_source(source, labels=labels, data=data)
        for line in list_cells(request, place):
            say(line)
        return
    compare_on_terminal(request, place, device, quiet)


def compare_on_terminal(request: CompareRequest, out: Path, device: str, quiet: bool) -> None:
    """Train and write a comparison, and show it on the terminal."""
    from propos.cli.display import Terminal
    from propos.cli.stopping import stop_on_signals
    from propos.common.errors import RunFailed
    from propos.distributed import join_process_group, rank
    from propos.runner.batch import TrainingOptions
    from propos.study.compare.comparison import compare
    from propos.study.compare.output import notes, plain_table

    # Only rank 0 prints.
    with join_process_group(), Terminal(quiet or rank() > 0, mute=rank() > 0) as terminal:

        def stopping() -> AbstractContextManager[Callable[[], bool]]:
            return stop_on_signals(terminal)

        reporter = terminal if terminal.live else None
        found = compare(request, out, TrainingOptions(device, reporter, stopping, terminal.note, terminal.warn))
        terminal.note("")
        for line in plain_table(found.state, found.rows):
            say(line)
        for line in ["", *notes(found.state, found.rows)]:
            terminal.line(line)
        terminal.note(f"Written: {out / 'compare.md'}, .csv, .json, .svg and .png; the runs are in {out / 'cells'}")
        for problem in found.problems:
            terminal.warn(problem)
    refused = [method for method in request.methods if method in found.state.refused]
    missing = [f"not compared: {', '.join(refused)}"] if refused else []
    if found.problems:
        are = "cell is" if len(found.problems) == 1 else "cells are"
        missing.append(f"{len(found.problems)} {are} not finished; run the same command again to continue")
    if missing:
        raise RunFailed("; ".join(missing))
