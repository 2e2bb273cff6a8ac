"""The list of commands."""

from __future__ import annotations

import typer

from propos import __version__
from propos.cli.apply import apply
from propos.cli.ask import ask
from propos.cli.cache import cache
from propos.cli.compare import compare
from propos.cli.datasets import datasets
from propos.cli.doctor import doctor
from propos.cli.evaluate import evaluate
from propos.cli.export import export
from propos.cli.inspect import inspect
from propos.cli.methods import methods
from propos.cli.open import open_run
from propos.cli.predict import predict
from propos.cli.recipes import recipes
from propos.cli.report import report
from propos.cli.reproduce import reproduce
from propos.cli.run import run
from propos.cli.suggest_k import suggest_k

app = typer.Typer(
    name="propos",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version and leave.")
) -> None:
    """Turn unlabelled images into clusters you can trust."""
    if version:
        typer.echo(f"propos {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command()(inspect)
app.command()(run)
app.command()(suggest_k)
app.command()(predict)
app.command()(evaluate)
app.command()(report)
app.command("open")(open_run)
app.command()(apply)
app.command()(ask)
app.command()(export)
app.command()(compare)
app.command()(reproduce)
app.command()(methods)
app.add_typer(recipes, name="recipes")
app.add_typer(datasets, name="datasets")
app.add_typer(cache, name="cache")
app.command()(doctor)
