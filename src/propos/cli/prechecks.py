"""Checks before heavy imports: missing folders and files."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from propos.common.errors import InputError, no_such_run
from propos.common.names import nearest, no_such_source


def existing_run(run: Path) -> Path:
    """Refuse a run folder that does not exist."""
    if not run.exists() and is_only_process():
        raise no_such_run(run)
    return run


FINISHED_RUN = typer.Argument(metavar="RUN", help="A finished run folder.", callback=existing_run)


def is_only_process() -> bool:
    """Return whether this is the only process: under torchrun only rank 0 prints, and ranks are known later."""
    return "WORLD_SIZE" not in os.environ


def refuse_deleted_folder() -> None:
    """Refuse to work in a deleted folder: torch's libraries would end the process with their own message."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError("the current folder was deleted: change to another one (cd)") from None


def check_source(source: str | None) -> None:
    """Refuse a source that does not exist, without importing torch first.

    If the name is unambiguous, the data modules are not imported either.
    """
    if source is None or os.path.lexists(source) or not is_only_process():
        return
    if _plain(source) and nearest(source) is None:
        raise no_such_source(source)
    from propos.data import find_source, is_named

    if not is_named(source):
        find_source(source)


def _plain(source: str) -> bool:
    """Return whether a name is printable and not an array file, which has its own message."""
    return source.isprintable() and "\\" not in source and not source.lower().endswith((".npy", ".npz"))
