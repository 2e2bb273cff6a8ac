"""`propos methods`: what can be trained."""

from __future__ import annotations

import typer


def methods() -> None:
    """List the methods; any of them works with `propos run --method`."""
    from propos.methods import METHODS, describe

    for name in METHODS:
        typer.echo(f"{name:24} {describe(name)}")
