"""Images in a folder for each cluster: links to the originals, or copies."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Literal

from propos.common.errors import InputError
from propos.review.export.originals import originals_of
from propos.review.export.safe_names import Distinct
from propos.review.export.split import PARTS, Split
from propos.runs import Cluster, Run, write_atomically

How = Literal["symlink", "hardlink", "copy"]
WAYS: dict[How, Callable[[Path, Path], object]] = {
    "symlink": lambda original, new: new.symlink_to(original),
    "hardlink": lambda original, new: os.link(original, new),
    "copy": lambda original, new: shutil.copyfile(original, new),
}


def plan_folders(run: Run, split: Split | None = None) -> list[tuple[Path, Path]]:
    """Return the file of each image in a cluster, and its target path, relative to the new folder.

    With a split, the clusters' folders are in `train`, `val` and `test`, because classes are folders there. Otherwise a
    cluster below named nodes of the tree is in a folder of each.
    """
    originals, place_of = originals_of(run), _Places()
    parts = [""] * len(originals) if split is None else [part or "" for part in split.names()]
    planned = []
    for cluster in run.corrected.clusters:
        folder, name_file = place_of(cluster, flat=split is not None), Distinct()
        planned += [
            (originals[row].path, Path(parts[row], folder) / name_file(originals[row].path.name, row))
            for row in cluster.members.tolist()
        ]
    return planned


class _Places:
    """The folders of clusters and of the nodes above them: each its own, whatever the names."""

    def __init__(self) -> None:
        self._names: dict[Path, Distinct] = {}
        self._nodes: dict[int, Path] = {}

    def __call__(self, cluster: Cluster, flat: bool) -> Path:
        place = Path()
        for node, name in () if flat else cluster.above:
            if node not in self._nodes:
                self._nodes[node] = self._inside(place, name, node)
            place = self._nodes[node]
        return self._inside(place, title(cluster), cluster.id)

    def _inside(self, place: Path, name: str, mark: int) -> Path:
        return place / self._names.setdefault(place, Distinct())(name, mark)


def write_folders(run: Run, out: Path, how: How, split: Split | None = None) -> int:
    """Put every image into its cluster's folder; originals are only read, or linked to."""
    planned = plan_folders(run, split)
    for original, place in planned:
        new = out / place
        new.parent.mkdir(parents=True, exist_ok=True)
        try:
            WAYS[how](original, new)
        except OSError as error:
            if how == "copy" or error.errno == errno.ENOSPC:
                raise
            why = error.strerror or error
            raise InputError(f"{original}: cannot be linked to ({why}); choose --how copy") from None
    if split is not None:
        # Readers number classes by the folders that a part has, so all parts need all of them, if need be empty.
        for part, name in product(PARTS[: split.parts], {place.parts[1] for _, place in planned}):
            (out / part / name).mkdir(parents=True, exist_ok=True)
        write_atomically(out / "README.md", split.card().encode())
    return len(planned)


def title(cluster: Cluster) -> str:
    """Return a cluster's name, or "cluster ID" if it has none."""
    return cluster.name or f"cluster {cluster.id}"


def absent_clusters(run: Run, split: Split) -> list[str]:
    """Return the clusters that are missing in a part: too few of their images are independent of each other."""
    filled = (cluster for cluster in run.corrected.clusters if len(cluster.members))
    return [title(each) for each in filled if len(set(split.part[each.members].tolist())) < split.parts]
