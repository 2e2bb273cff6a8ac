"""The files that a run's images are in, found again by their names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from propos.common.errors import InputError, shown
from propos.data import find_configured
from propos.runs import Run


@dataclass(frozen=True)
class Original:
    """An image file, with its size as it is seen."""

    path: Path
    width: int
    height: int


def originals_of(run: Run) -> list[Original]:
    """Return the file of each image of the run's table, or say why that cannot be."""
    if run.config.source is None:
        raise InputError(f"{run.path}: was trained on an array in memory, which has no files: choose csv or parquet")
    found = find_configured(run.config).headers
    if found is None or any(header.entry.member is not None for header in found.headers):
        raise InputError(
            f"{run.config.source}: holds its images in one file, or in a data set's own: choose csv, parquet or json"
        )
    files = {
        header.entry.name: Original(header.entry.path.absolute(), header.width, header.height)
        for header in found.headers
    }
    missing = [name for name in run.table.images if name not in files]
    if missing:
        raise InputError(
            f"{run.config.source}: {len(missing):,} of the run's images are no longer there, the first "
            f"{shown(missing[0])}: put them back, or export a table"
        )
    return [files[name] for name in run.table.images]
