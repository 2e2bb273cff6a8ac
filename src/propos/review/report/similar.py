"""The search for duplicates and bursts among all images of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int

from propos.common.progress import ShowTask
from propos.data import Files, Source, image_digests
from propos.data.files.survey import exact_duplicates
from propos.review.report.duplicates import (
    ALIKE,
    Pairs,
    burst_pairs,
    exact_groups,
    groups,
    likely_pairs,
    near_pairs,
    taken_apart,
)
from propos.review.report.faults import find_faults
from propos.review.report.pictures import PER_SHEET, Pictures, draw_pictures, picture_order, sketches_of
from propos.runs import JUNK, Run, Vectors


@dataclass(frozen=True)
class Similar:
    """Groups of images that are similar, or the same; rows of the run's table."""

    exact: list[list[int]] = field(default_factory=list)
    near: list[list[int]] = field(default_factory=list)
    bursts: list[list[int]] = field(default_factory=list)
    faults: dict[str, list[int]] = field(default_factory=dict)  # single images, by what is wrong with them


def draw_and_compare(
    run: Run, source: Source, featured: Sequence[int], folder: Path, show_task: ShowTask
) -> tuple[Pictures, Similar]:
    """Draw the thumbnails of a run's images into a folder, and find faults, duplicates and bursts among all images."""
    table = run.corrected.table
    order = picture_order(featured, table.cluster, table.distance)
    with show_task("Drawing thumbnails") as progress:
        pictures = draw_pictures(source, order, folder, progress)
    kept = table.cluster != JUNK  # junk has been checked already
    similar = find_similar(source, pictures, run.embedding_rows, kept, run.config.seed, show_task)
    return pictures, replace(similar, faults=find_faults(source, pictures.order, pictures.measures, kept))


def find_similar(
    source: Source,
    pictures: Pictures,
    embeddings: Vectors,
    kept: Bool[np.ndarray, " N"],
    seed: int,
    show_task: ShowTask,
) -> Similar:
    """Find duplicates and bursts among all images; those that are not kept are exact duplicates at most."""
    with show_task("Looking for duplicates") as progress:
        files = source.entries if isinstance(source, Files) else None
        all_drawn = len(pictures.order) == len(source)
        if files is None and not all_drawn:
            exact = exact_groups(np.arange(len(source)), list(image_digests(source)))
        else:
            same = [] if files is None else exact_duplicates(files)
            exact = exact_groups(pictures.order, pictures.digests, same)
        progress(1, 3)
        use = kept & ~_later(exact, len(source))
        near = pictures.order[near_pairs(pictures.sketches, use[pictures.order], seed)]
        if not all_drawn:
            likely = likely_pairs(embeddings, use, seed)
            near = np.concatenate([near, likely[:, _alike(source, pictures, likely)]], axis=1)
        progress(2, 3)
        if files is None:
            return Similar(exact, groups(near))
        apart = taken_apart(near, files.facts)
        copies = groups(near[:, ~apart])
        bursts = near[:, apart]
        if files.facts["camera"].any():
            one_each = use & ~_later(copies, len(source))
            bursts = np.concatenate([bursts, burst_pairs(files.facts, embeddings, one_each)], axis=1)
        return Similar(exact, copies, groups(bursts))


def _later(copies: list[list[int]], images: int) -> Bool[np.ndarray, " N"]:
    """Return a mask of all images of each group but the first."""
    later = np.zeros(images, dtype=bool)
    later[[image for group in copies for image in group[1:]]] = True
    return later


def _alike(source: Source, pictures: Pictures, pairs: Pairs) -> Bool[np.ndarray, " L"]:
    """Return which pairs have nearly the same sketch; images without a picture are read."""
    images, place = np.unique(pairs, return_inverse=True)
    one, other = place.reshape(pairs.shape)
    sketches = np.zeros((len(images), pictures.sketches.shape[1]), np.float32)
    tile: Int[np.ndarray, " N"] = np.full(len(source), -1, np.int32)
    tile[pictures.order] = np.arange(len(pictures.order))
    drawn = tile[images] >= 0
    sketches[drawn] = pictures.sketches[tile[images[drawn]]]
    missing = np.flatnonzero(~drawn)
    for start in range(0, len(missing), PER_SHEET):
        part = missing[start : start + PER_SHEET]
        sketches[part] = sketches_of(source, images[part], pictures.side)
    alike: Bool[np.ndarray, " L"] = np.einsum("ls,ls->l", sketches[one], sketches[other]) > ALIKE
    return alike
