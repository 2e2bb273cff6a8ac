"""The list of commands."""

from __future__ import annotations

import typer

from propos import __version__
from propos.cli.apply import apply
from propos.cli.ask import ask
from propos.cli.audit import audit
from propos.cli.cache import cache
from propos.cli.compare import compare
from propos.cli.datasets import datasets
from propos.cli.doctor import doctor
from propos.cli.evaluate import evaluate
from propos.cli.export import export
from propos.cli.find import find
from propos.cli.inspect import inspect
from propos.cli.methods import methods
from propos.cli.name import name
from propos.cli.open import open_run
from propos.cli.prechecks import refuse_deleted_folder
from propos.cli.predict import predict
from propos.cli.proposals import proposals
from propos.cli.recipes import recipes
from propos.cli.report import report
from propos.cli.reproduce import reproduce
from propos.cli.run import run
from propos.cli.studio import studio
from propos.cli.suggest_k import suggest_k
from propos.cli.watch import watch

app = typer.Typer(
    name="propos",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its boxes leave half of the terminal for text, and call a flag <bool>
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version and exit.")
) -> None:
    """Turn unlabelled images into clusters you can trust."""
    if version:
        typer.echo(f"propos {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    else:
        refuse_deleted_folder()


app.command(short_help="Look at images before training; estimate the duration.")(inspect)
app.command()(run)
app.command(short_help="Suggest a number of clusters.")(suggest_k)
app.command()(predict)
app.command(short_help="Assign new images of a folder as they arrive.")(watch)
app.command(short_help="Score a run, against labels or by the shape of its clusters.")(evaluate)
app.command()(report)
app.command(short_help="Cluster, review and export in the browser.")(studio)
app.command("open", short_help="Open a run's page in the browser, to correct it.")(open_run)
app.command(short_help="Apply corrections to a run: names, merges, moves, junk.")(apply)
app.command(short_help="List the images whose labels would help most.")(ask)
app.command(short_help="List the images most similar to some images.")(find)
app.command(short_help="Estimate how many labels are right.")(audit)
app.command(short_help="Propose names for the clusters of a run.")(name)
app.command(short_help="List, accept or dismiss what programs propose, such as names.")(proposals)
app.command(short_help="Export a run's labels for other programs.")(export)
app.command(short_help="Train several methods on the same images, side by side.")(compare)
app.command(short_help="Reproduce the paper's tables and figures.")(reproduce)
app.command()(methods)
app.add_typer(recipes, name="recipes")
app.add_typer(datasets, name="datasets")
app.add_typer(cache, name="cache")
app.command()(doctor)
