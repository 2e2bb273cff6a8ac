"""From what a person names to a source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from propos.common.errors import InputError
from propos.common.names import BUILT_IN
from propos.common.progress import ShowTask, show_nothing
from propos.config import Config, ViewSettings
from propos.data.array_files import read_arrays
from propos.data.arrays import ArraySource, from_array
from propos.data.cache.images import Layout, Progress
from propos.data.cache.index import indexed_scan
from propos.data.files.classes import folder_labels
from propos.data.files.names import escape_name
from propos.data.folder import open_cached_or_streamed
from propos.data.published import data_root, named, nearest
from propos.data.source import Source
from propos.data.unopened import CachePolicy, UnopenedSource

ARRAY_FILES = (".npy", ".npz")
LARGEST_SIDE = 256  # a crop of a small part of a photograph is cut from no more pixels than this

What = str | Path | Sequence[str | Path] | np.ndarray


def find_configured(config: Config, data: str | Path | None = None) -> UnopenedSource:
    """Find the source that a run's settings name, with their labels and pixel range; `data` overrides the settings'."""
    assert config.source is not None
    pixels = config.pixels
    return find_source(config.source, pixels.black, pixels.white, config.labels, data or config.data)


def find_source(
    what: What,
    black: float | None = None,
    white: float | None = None,
    labels: str | None = None,
    data: str | Path | None = None,
    show_task: ShowTask = show_nothing,
) -> UnopenedSource:
    """Look at a set by name, an array, a .npy or .npz file, or a folder, list or archive of images.

    With `labels="folders"` an image's class folder is its label, for scoring. Published sets are looked for under
    `data`, else PROPOS_DATA. A path that exists wins over a name. `show_task` shows how far a long look is.
    """
    if isinstance(what, np.ndarray):
        return _unopened_array(from_array(what, black=black, white=white))
    if not isinstance(what, str | Path):
        return _unopened_folder(what, labels, show_task)
    if is_named(what):
        if labels is not None:
            raise InputError(f"--labels {labels}: {what} has labels of its own: leave it out")
        return _unopened_named(str(what), data)
    if is_array(what):
        if labels is not None:
            raise InputError(f"--labels {labels}: {what} is an array, not a folder; give labels in an .npz file")
        images, given = read_arrays(Path(what))
        return _unopened_array(from_array(images, given, name=Path(what).name, black=black, white=white))
    if not Path(what).exists() and (near := nearest(str(what))) is not None:
        raise InputError(f"{escape_name(str(what))}: no such file, folder or data set; did you mean {near}?")
    return _unopened_folder(what, labels, show_task)


def is_named(what: What) -> bool:
    """Return whether this names a built-in or published set and is not an existing path."""
    if not isinstance(what, str) or Path(what).exists():
        return False
    return what in BUILT_IN or named(what) is not None


def is_benchmark(what: What) -> bool:
    """Return whether this names a published set, which is read from the data root."""
    return is_named(what) and what not in BUILT_IN


def is_array(what: str | Path) -> bool:
    """Return whether a file contains arrays, by its ending."""
    return Path(what).suffix.lower() in ARRAY_FILES


def open_source(what: What, black: float | None = None, white: float | None = None, side: int = LARGEST_SIDE) -> Source:
    """Open what a person names."""
    return find_source(what, black, white).open(side)


def cache_side(views: ViewSettings) -> int:
    """Return the side at which images are kept: the smallest crop should be cut from as many pixels as a view has.

    Of images that keep their shape it is the shorter one.
    """
    if views.keep == "shapes":
        return max(views.size, LARGEST_SIDE)
    wanted = views.size / math.sqrt(views.crop_scale[0])
    return max(views.size, min(LARGEST_SIDE, 16 * math.ceil(wanted / 16)))


def _unopened_named(name: str, data: str | Path | None) -> UnopenedSource:
    if name in BUILT_IN:
        return _unopened_array(_digits())
    meant = named(name)
    assert meant is not None
    benchmark, split = meant
    return benchmark.look(data_root(data), split)


def _unopened_array(source: ArraySource) -> UnopenedSource:
    def open_array(
        side: int,
        channels: int | None = None,
        progress: Progress | None = None,
        keep: CachePolicy = "build",
        shaped: bool = False,
    ) -> Source:
        return source

    return UnopenedSource(
        len(source), source.channels, source.height, source.width, open_array, source.labels is not None
    )


def _unopened_folder(
    what: str | Path | Sequence[str | Path], labels: str | None, show_task: ShowTask
) -> UnopenedSource:
    found = indexed_scan(what, show_task)
    names = found.images.names
    folders = folder_labels(names)

    def open_images(
        side: int,
        channels: int | None = None,
        progress: Progress | None = None,
        keep: CachePolicy = "build",
        shaped: bool = False,
    ) -> Source:
        source = open_cached_or_streamed(what, found, Layout(side, channels or found.channels, shaped), progress, keep)
        if labels == "folders":
            classes = dict(zip(names, folders.classes, strict=True))
            source.labels, source.notes = np.array([classes[name] for name in source.image_names()]), found.notes
        return source

    width, height = found.median_size
    given = found.images.labels
    labelled = labels == "folders" or (given is not None and None not in given.tolist())
    return UnopenedSource(
        images=len(found.images),
        channels=found.channels,
        height=round(height),
        width=round(width),
        open=open_images,
        labelled=labelled,
        skipped=found.skipped,
        scan=found,
        folders=folders,
    )


def _digits() -> ArraySource:
    """Return the 1,797 handwritten digits of 8 × 8 pixels that ship with scikit-learn."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return from_array(digits.images, digits.target, name="digits", black=0.0, white=16.0)
