"""`propos methods`: what can be trained."""

from __future__ import annotations

import typer


def methods() -> None:
    """List the methods; any of them works with `propos run --method`."""
    from propos.methods import ABOUT, METHODS, describe

    for name in METHODS:
        about = ABOUT[name]
        typer.echo(f"{name:24} {about.year or '':4}  {describe(name)}")
        typer.echo(f"{'':31}{about.reference}; verified: {about.verified}")
