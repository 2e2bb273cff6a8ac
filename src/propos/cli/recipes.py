"""`propos recipes`: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import typer

recipes = typer.Typer(help="List the recipes, or show all settings of one.")


@recipes.callback(invoke_without_command=True)
def list_recipes(context: typer.Context) -> None:
    """List the recipes, or show all settings of one."""
    if context.invoked_subcommand is not None:
        return
    from propos.recipes import RECIPES, describe

    for name in RECIPES:
        typer.echo(f"{name:14} {describe(name)}")


@recipes.command("show")
def show(name: Annotated[str, typer.Argument(help="The recipe's name.")]) -> None:
    """Print all settings of a recipe; every key works with `propos run --set`."""
    from propos.recipes import build_recipe

    typer.echo(build_recipe(name).to_yaml(), nl=False)
