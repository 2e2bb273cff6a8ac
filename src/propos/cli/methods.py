"""`propos methods`: list the clustering methods."""

from __future__ import annotations

import typer


def methods() -> None:
    """List the methods, and whether each trains a network."""
    from propos.methods import describe, find_method, method_names

    for name in method_names():
        kind = find_method(name)
        typer.echo(f"{name:24} {kind.year or '':4}  {describe(name)}")
        trains = "trains a network" if kind.trains else "trains nothing"
        typer.echo(f"{'':31}{trains}; {kind.reference}; verified: {kind.verified}")
