"""Home folders, which not everybody has."""

from __future__ import annotations

from pathlib import Path

from propos.common.errors import InputError


def expanded(path: str | Path) -> Path:
    """Return a path with its ~ or ~name written out."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(f"{path}: there is no such home folder; write the path in full") from None


def home() -> Path | None:
    """Return the person's home folder, if the system knows one."""
    try:
        return Path.home()
    except RuntimeError:
        return None
