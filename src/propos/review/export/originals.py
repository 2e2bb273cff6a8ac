"""The files of a run's images, found by their names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from propos.common.errors import InputError, shown
from propos.data import find_configured
from propos.runs import Run


@dataclass(frozen=True)
class Original:
    """An image file, with its upright size."""

    path: Path
    width: int
    height: int


def originals_of(run: Run) -> list[Original]:
    """Return the file of each image of the run's table; raise InputError if there are no such files."""
    if run.config.source is None:
        raise InputError(f"{run.path}: its images were an array in memory, without files: choose csv or parquet")
    found = find_configured(run.config).headers
    if found is None or any(header.entry.member is not None for header in found.headers):
        raise InputError(f"{run.config.source}: its images are not single files: choose csv, parquet or json")
    files = {
        header.entry.name: Original(header.entry.path.absolute(), header.width, header.height)
        for header in found.headers
    }
    missing = [name for name in run.table.images if name not in files]
    if missing:
        raise InputError(
            f"{run.config.source}: {len(missing):,} of the run's images are missing, the first "
            f"{shown(missing[0])}: restore them, or export a table"
        )
    return [files[name] for name in run.table.images]
