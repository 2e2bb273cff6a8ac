"""`propos methods`: what can be trained."""

from __future__ import annotations

import typer


def methods() -> None:
    """List the methods; any of them works with `propos run --method`."""
    from propos.methods import describe, find_method, method_names

    for name in method_names():
        kind = find_method(name)
        typer.echo(f"{name:24} {kind.year or '':4}  {describe(name)}")
        typer.echo(f"{'':31}{kind.reference}; verified: {kind.verified}")
