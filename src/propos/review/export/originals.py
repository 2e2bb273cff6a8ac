"""The files of a run's images, found by their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int

from propos.common.errors import InputError, shown
from propos.data import find_configured
from propos.data.files.images import Images
from propos.runs import Run


@dataclass(frozen=True)
class Original:
    """An image file, with its upright size."""

    path: Path
    width: int
    height: int


class Originals:
    """The files of the images of a run's table, by row."""

    def __init__(self, images: Images, places: Int[np.ndarray, " N"]) -> None:
        self._images, self._places = images, places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, row: int) -> Original:
        entry = self._images[int(self._places[row])]
        return Original(entry.path.absolute(), entry.width, entry.height)

    def __iter__(self) -> Iterator[Original]:
        return (self[row] for row in range(len(self)))


def originals_of(run: Run) -> Originals:
    """Return the file of each image of the run's table; raise InputError if there are no such files."""
    if run.config.source is None:
        raise InputError(f"{run.path}: its images were an array in memory, without files: choose csv or parquet")
    found = find_configured(run.config).scan
    if found is None or found.images.archive:
        raise InputError(f"{run.config.source}: its images are not single files: choose csv, parquet or json")
    places = found.images.places(run.table.images)
    missing = np.flatnonzero(places < 0)
    if len(missing):
        raise InputError(
            f"{run.config.source}: {len(missing):,} of the run's images are missing, the first "
            f"{shown(run.table.images[int(missing[0])])}: restore them, or export a table"
        )
    return Originals(found.images, places)
