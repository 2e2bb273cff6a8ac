"""A summary of a folder's images from their headers alone, and the images with the very same bytes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int, Shaped

from propos.data.files.content import EDGE, KINDS, content_hash
from propos.data.files.entry import Skipped
from propos.data.files.images import Images
from propos.data.files.scan import Scan, What, read_all, scan


@dataclass(frozen=True)
class Survey:
    """Counts, sizes, colours, faults and exact duplicates of the images a person names."""

    root: Path
    images: Images
    skipped: list[Skipped]
    formats: dict[str, int]  # the commonest first
    median_width: float
    median_height: float
    common_size: tuple[int, int] | None  # width, height, when all images share it
    channels: int  # 1 when all images are greyscale, else 3
    duplicates: list[list[str]]  # names of images with the very same bytes, a list for each such content

    def __len__(self) -> int:
        return len(self.images)


def survey(what: What | Scan) -> Survey:
    """Scan, unless that is done, and compare whole contents only where sizes and edges agree."""
    found = what if isinstance(what, Scan) else scan(what)
    width, height = found.median_size
    names = found.images.names
    return Survey(
        root=found.root,
        images=found.images,
        skipped=found.skipped,
        formats=count_formats(found.images),
        median_width=width,
        median_height=height,
        common_size=found.common_size,
        channels=found.channels,
        duplicates=[[names[position] for position in group] for group in exact_duplicates(found.images)],
    )


def count_formats(images: Images) -> dict[str, int]:
    """Count the images of each format, the commonest first; of equal counts, the one whose image comes first."""
    kinds, first, counts = np.unique(images.facts["kind"], return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))
    return {KINDS[kind]: int(count) for kind, count in zip(kinds[order], counts[order], strict=True)}


def exact_duplicates(images: Images) -> list[list[int]]:
    """Group the images with the very same bytes, by position."""
    decided: list[list[int]] = []
    open_cases: list[int] = []
    for group in _alike(images):
        whole = images.stamps["size"][group[0]] <= 2 * EDGE and not images.archive  # its digest is of all bytes
        (decided.append if whole else open_cases.extend)(group)
    hashes: dict[bytes, list[int]] = defaultdict(list)
    for position, value in zip(open_cases, read_all(open_cases, lambda at: content_hash(images[at])), strict=True):
        if not isinstance(value, Exception):
            hashes[value].append(position)
    return sorted(decided + [group for group in hashes.values() if len(group) > 1])


def _alike(images: Images) -> list[list[int]]:
    """Group the images that agree in size and digest."""
    digest: Shaped[np.ndarray, " N"] = np.ascontiguousarray(images.facts["digest"]).view([("a", "<u8"), ("b", "<u8")])
    size = images.stamps["size"]
    order: Int[np.ndarray, " N"] = np.lexsort((digest["b"], digest["a"], size))  # stable: positions ascend in a group
    columns = [column[order] for column in (size, digest["a"], digest["b"])]
    new: Bool[np.ndarray, " N"] = np.ones(len(order), dtype=bool)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    starts = np.flatnonzero(new)
    lengths = np.diff(starts, append=len(order))
    several = lengths > 1
    pairs = zip(starts[several].tolist(), lengths[several].tolist(), strict=True)
    return [order[start : start + length].tolist() for start, length in pairs]
