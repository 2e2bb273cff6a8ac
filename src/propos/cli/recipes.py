"""`propos recipes`: list the recipes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from propos.runner.recipes import Row

recipes = typer.Typer(help="List the recipes, or show all settings of one.", rich_markup_mode=None)


@recipes.callback(invoke_without_command=True)
def list_recipes(context: typer.Context) -> None:
    """List the recipes, or show all settings of one."""
    if context.invoked_subcommand is not None:
        return
    from propos.runner.recipes import RECIPES, describe

    longest = max(len(name) for name in RECIPES)
    for name in RECIPES:
        typer.echo(f"{name:{longest}}  {describe(name)}")


@recipes.command("show", short_help="Print all settings of a recipe.")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The recipe's name.")],
    method: Annotated[
        str | None, typer.Option(help="Method (see `propos methods`; default: the recipe's own).")
    ] = None,
    against: Annotated[
        Literal["paper"] | None,
        typer.Option(help="paper: compare each setting with the paper's value, and say where it is stated."),
    ] = None,
) -> None:
    """Print all settings of a recipe; every key works with `propos run --set`."""
    from propos.methods import check_method, complete_sections
    from propos.runner.recipes import build_recipe, paper_diff

    if method is not None:
        check_method(method)
    config = complete_sections(build_recipe(name, method))
    if against is None:
        typer.echo(config.to_yaml(), nl=False)
        return
    typer.echo(f"{'setting':28} {'here':>18}   {'the paper':>18}   where")
    for row in paper_diff(name, config):
        typer.echo(_line(row))


def _line(row: Row) -> str:
    reference = row.reference
    paper = "not said" if reference is None or not reference.paper else _shown(reference.value)
    words = [] if reference is None else [reference.where]
    if row.differs and reference is not None and not reference.paper:
        words = [f"{reference.where}: {_shown(reference.value)}"]
    words += [] if row.note is None else [f"here: {row.note}" if row.differs else row.note]
    return (
        f"{row.key:28} {_shown(row.ours):>18} {'≠' if row.differs else ' '} {paper:>18}   {'; '.join(words)}".rstrip()
    )


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, tuple):
        return ", ".join(_shown(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
