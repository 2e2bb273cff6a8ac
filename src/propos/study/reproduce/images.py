"""The images of reduced studies: some of a published set, or of what stands in for it, as a file of arrays."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Int, Shaped, UInt8

from propos.common.errors import InputError
from propos.data import MissingData, Source, UnopenedSource, benchmark, closing_source, evenly_spaced, find_source
from propos.runs import write_atomically

STAND_IN = "digits"  # scikit-learn's, which need no download


@dataclass(frozen=True)
class Images:
    """The images of a cell: a published set, or a subset of it at a given side, or a stand-in for it."""

    data: str
    count: int | None = None
    classes: int | None = None
    side: int | None = None
    stand_in: bool = False

    def file(self, folder: Path) -> Path:
        """Return the file of arrays that holds them."""
        name = f"{STAND_IN}-for-{self.data}" if self.stand_in else self.data
        return folder / f"{name.replace(':', '-')}-{self.count}.npz"


@cache
def find_set(data: str, root: Path | None) -> UnopenedSource | None:
    """Find a published set under the data root; None if it, or part of it, is missing."""
    name, _, split = data.partition(":")
    if root is None:
        return None
    try:
        return benchmark(name).look(root, split or None)
    except MissingData:
        return None


def is_available(data: str, root: Path | None) -> bool:
    """Return whether a set is on this machine."""
    return find_set(data, root) is not None


def source_of(images: Images, root: Path | None, folder: Path) -> str:
    """Return what names the images to a run: the set itself, or a file of some of them, made where it is missing."""
    if images.count is None:
        return images.data
    path = images.file(folder)
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _packed(images, root))
    return str(path.resolve())


def _packed(images: Images, root: Path | None) -> bytes:
    assert images.count is not None
    unopened = find_source(STAND_IN) if images.stand_in else find_set(images.data, root)
    if unopened is None:
        raise InputError(f"{images.data}: data not found under {root}")
    source = unopened.open(images.side or 32, keep="stream")
    with closing_source(source):
        if source.labels is None:
            raise InputError(f"{images.data}: has no labels to score against")
        positions = choose_positions(np.asarray(source.labels), images.count, images.classes)
        if images.stand_in and images.data.endswith((":val", ":test")):
            positions = (positions + 1) % len(source)  # others than those that stand in for what is trained on
        packed = io.BytesIO()
        np.savez(packed, images=_in_colour(source, positions), labels=np.asarray(source.labels)[positions])
    return packed.getvalue()


def choose_positions(labels: Shaped[np.ndarray, " N"], count: int, classes: int | None) -> Int[np.ndarray, " n"]:
    """Return evenly spaced positions among the images of the first classes: each part of a set keeps its share."""
    first = np.unique(labels)[:classes]
    among: Int[np.ndarray, " m"] = np.flatnonzero(np.isin(labels, first))
    positions: Int[np.ndarray, " n"] = among[evenly_spaced(len(among), count)]
    return positions


def _in_colour(source: Source, positions: Int[np.ndarray, " n"]) -> UInt8[np.ndarray, "n H W 3"]:
    pixels = source.batch(positions).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:3], 3)))
