"""`propos compare`: methods side by side on one source."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli.streams import say

if TYPE_CHECKING:
    from propos.study.compare.asking import Wanted


def compare(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="What `propos run` takes: a folder, an array, a list, a set by name."),
    ],
    methods: Annotated[
        str,
        typer.Option(metavar="A,B,…", help="Methods with commas between them (see `propos methods`), or all."),
    ] = "propos,byol,simclr,cc,kmeans-pixels",
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Runs of each method, from seed 0.")] = 3,
    clusters: Annotated[
        int | None, typer.Option("-k", min=2, help="How many clusters; without it as many as there are labels.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--time", metavar="10m", help="Train each about so long: 45s, 10m or 2h.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Train each for so many epochs.")] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Where everything goes; compare-SOURCE unless told.")
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="A recipe by name (see `propos recipes`).")] = None,
    start: Annotated[
        str | None,
        typer.Option(metavar="START", help="What all of them start from: scratch, pretrained or pretrained:NAME."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of all; repeatable.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="folders: score against class folders, which may lie in train, val and test; never used to train."
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The folder of data sets; else PROPOS_DATA.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be trained.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings, errors and the table.")] = False,
) -> None:
    """Train several methods on the same images for as long, and show what each came to."""
    from propos.cli.threads import settle_threads

    settle_threads()
    from propos.config import parse_assignments
    from propos.data import find_source
    from propos.runner.request import run_name
    from propos.study.compare.asking import Wanted, read_methods
    from propos.study.compare.comparing import list_cells

    wanted = Wanted(
        source, read_methods(methods), seeds, budget, epochs, clusters, recipe, start, labels,
        parse_assignments(settings or []), data,
    )  # fmt: skip
    place = out or Path(f"compare-{run_name(source)}")
    if dry_run:
        find_source(source, labels=labels, data=data)
        for line in list_cells(wanted, place):
            say(line)
        return
    compare_shown(wanted, place, device, quiet)


def compare_shown(wanted: Wanted, out: Path, device: str, quiet: bool) -> None:
    """Train and write what is wanted, and show it on the terminal."""
    from propos.cli.display import Terminal
    from propos.cli.stopping import stop_on_signals
    from propos.common.errors import RunFailed
    from propos.distributed import joined, rank
    from propos.runner.batch import Manner
    from propos.study.compare.comparing import compare
    from propos.study.compare.writing import notes, plain_table

    # Of several processes the first alone speaks.
    with joined(), Terminal(quiet or rank() > 0, mute=rank() > 0) as terminal:

        def stopping() -> AbstractContextManager[Callable[[], bool]]:
            return stop_on_signals(terminal)

        reporter = terminal if terminal.live else None
        found = compare(wanted, out, Manner(device, reporter, stopping, terminal.note, terminal.warn))
        terminal.note("")
        for line in plain_table(found.state, found.rows):
            say(line)
        for line in ["", *notes(found.state, found.rows)]:
            terminal.line(line)
        terminal.note(f"Written: {out / 'compare.md'}, .csv, .json, .svg and .png; the runs are in {out / 'cells'}")
        for problem in found.problems:
            terminal.warn(problem)
    refused = [method for method in wanted.methods if method in found.state.refused]
    missing = [f"not compared: {', '.join(refused)}"] if refused else []
    if found.problems:
        are = "cell is" if len(found.problems) == 1 else "cells are"
        missing.append(f"{len(found.problems)} {are} not finished; the same command goes on")
    if missing:
        raise RunFailed("; ".join(missing))
