"""What can be refused before anything heavy is imported: folders and files that are not there."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from propos.common.errors import InputError, no_such_run
from propos.common.names import nearest, no_such_source


def there(run: Path) -> Path:
    """Refuse a run folder that does not exist."""
    if not run.exists():
        raise no_such_run(run)
    return run


FINISHED_RUN = typer.Argument(metavar="RUN", help="A finished run folder.", callback=there)


def alone() -> bool:
    """Return whether no other process may say the same: of several the first alone speaks, known only later."""
    return "WORLD_SIZE" not in os.environ


def refuse_deleted_folder() -> None:
    """Refuse to work in a folder that was deleted: torch's libraries would end the process in words of their own."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError("the current folder was deleted: change to another one (cd)") from None


def refuse_absent(source: str | None) -> None:
    """Refuse a source that is neither there nor a name, as opening it would, without reading torch first.

    Where nothing else could be meant, what reads images is not read either.
    """
    if source is None or os.path.lexists(source) or not alone():
        return
    if _plain(source) and nearest(source) is None:
        raise no_such_source(source)
    from propos.data import find_source, is_named

    if not is_named(source):
        find_source(source)


def _plain(source: str) -> bool:
    """Tell whether a name is printed as it is, and would be a folder: files of arrays have words of their own."""
    return source.isprintable() and "\\" not in source and not source.lower().endswith((".npy", ".npz"))
