"""`propos datasets`: the published sets known by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli.streams import say

if TYPE_CHECKING:
    from propos.data import Benchmark

datasets = typer.Typer(help="List the data sets known by name, or download one.", rich_markup_mode=None)
Root = Annotated[Path | None, typer.Option("--data", help="Folder of data sets (default: PROPOS_DATA).")]


@datasets.callback(invoke_without_command=True)
def list_sets(context: typer.Context, data: Root = None) -> None:
    """List the data sets known by name, and which are installed."""
    if context.invoked_subcommand is not None:
        return
    from propos.data import CATALOGUE, data_root

    root = data_root(data)
    typer.echo(f"{'name':14} {'images':>9}  {'classes':>7}  {'size':12} {'splits':36} found")
    for each in CATALOGUE.values():
        splits = ", ".join(each.splits)
        line = f"{each.name:14} {each.images:>9,}  {each.classes:>7,}  {each.size:12} {splits:36} {_found(each, root)}"
        typer.echo(line)
    say(f"looked under {root}" if root else "give --data FOLDER, or set PROPOS_DATA, to look for them")


@datasets.command("fetch", short_help="Download a data set into the data folder.")
def fetch_set(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The data set's name.")],
    data: Root = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings and errors.")] = False,
) -> None:
    """Download a data set into the data folder and check its published checksum; continues an earlier download."""
    from propos.cli.display import Terminal
    from propos.common.errors import InputError
    from propos.data import benchmark, data_root
    from propos.data.published.fetch import fetch

    wanted, root = benchmark(name), data_root(data)
    if root is None:
        raise InputError("no data folder: give --data FOLDER, or set PROPOS_DATA")
    with Terminal(quiet) as terminal:
        with terminal.show_task(f"Fetching {name}") as progress:
            folder = fetch(wanted, root, progress)
        terminal.note(f"{name}: {wanted.look(root).images:,} images in {folder}")


def _found(benchmark: Benchmark, root: Path | None) -> str:
    """Describe how much of a data set is installed."""
    from propos.common.errors import InputError
    from propos.data import MissingData

    if root is None or not benchmark.folder(root).is_dir():
        return "–"
    try:
        return f"{benchmark.look(root).images:,} images"
    except MissingData as error:
        return f"incomplete: {error.what}"
    except InputError as error:
        return f"damaged: {error}"
