"""Files that a person has a command write, which must not be those it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from propos.errors import InputError

if TYPE_CHECKING:
    from propos.data import Source


def refuse_to_overwrite(output: Path, read: Iterable[str | Path]) -> None:
    """Refuse an output that is one of the files that are read, by whichever of its names."""
    identity = _identity(output)
    for path in () if identity is None else read:
        if _identity(Path(path)) == identity:
            raise InputError(f"{output}: is what is read ({path}); choose another file to write")


def files_of(source: Source) -> Iterator[Path]:
    """Yield the files that hold a source's images."""
    yield from dict.fromkeys(entry.path for entry in getattr(source, "entries", ()))


def files_in(folder: Path) -> Iterator[Path]:
    """Yield all files of a run folder."""
    return (path for path in folder.rglob("*") if path.is_file())


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what a file is, whatever it is called; nothing where there is none."""
    with suppress(OSError, ValueError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None
