"""A sheet with the most typical images of the clusters that an E-step found."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Int, UInt8
from PIL import Image

from propos.data import Source, upright
from propos.distributed import gather_on_first, share
from propos.training.e_step import Assignment
from propos.training.features import FeatureSource
from propos.training.prefetch import ReadAhead, read

ROWS, COLUMNS, SIDE, GAP = 40, 12, 48, 2  # of a sheet: clusters, images of each, pixels of an image, and between


def typical(members: np.ndarray, near: np.ndarray) -> Int[np.ndarray, " m"]:
    """Return a cluster's images nearest to its prototype, the nearest first."""
    rows: Int[np.ndarray, " m"] = members.nonzero()[0]
    return rows[np.argsort(-near[rows], kind="stable")][:COLUMNS]


def sheet(
    source: Source, assignment: Assignment, near: np.ndarray, may_draw: Callable[[float], bool] = lambda seconds: True
) -> UInt8[np.ndarray, "H W 3"] | None:
    """Draw the most typical images of the first clusters, in a row for each.

    `may_draw` is asked after the first row, with the seconds that all will take; None if it says no.
    """
    begin = time.monotonic()
    labels, step = assignment.labels.cpu().numpy(), SIDE + GAP
    rows = [typical(labels == cluster, near) for cluster in range(min(len(assignment.prototypes), ROWS))]
    drawn = Image.new("RGB", (COLUMNS * step, max(1, len(rows)) * step), "white")
    for row, positions in enumerate(rows):
        for column, picture in enumerate(_pictures(source, positions)):
            drawn.paste(picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR), (column * step, row * step))
        if row == 0 and not may_draw((time.monotonic() - begin) * len(rows)):
            return None
    return np.asarray(drawn)


def _pictures(source: Source, positions: Int[np.ndarray, " B"]) -> list[Image.Image]:
    """Return images for people to look at, also where the network's inputs are features."""
    if not len(positions):
        return []
    inner = source.wrapped if isinstance(source, ReadAhead) else source
    seen = inner.images if isinstance(inner, FeatureSource) else source
    pixels = read(seen, positions, torch.device("cpu")).cpu().numpy()
    images = [upright(seen, image, int(position)) for image, position in zip(pixels, positions, strict=True)]
    return [Image.fromarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0)) for image in images]


def closeness(assignment: Assignment, images: int) -> np.ndarray | None:
    """Return each image's cosine with its cluster's prototype, on the first process."""
    labels = assignment.labels[share(images)].clamp(min=0)
    cosines = (assignment.embeddings * assignment.prototypes[labels]).sum(dim=1)
    whole = gather_on_first(cosines.float().cpu(), images)
    return None if whole is None else whole.numpy()
