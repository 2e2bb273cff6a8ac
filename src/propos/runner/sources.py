"""Opening of images: a run's own, which must be unchanged, and others that are read in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from propos.common.errors import InputError
from propos.common.progress import ShowTask, show_nothing
from propos.config import Config
from propos.config.description import Description
from propos.data import (
    CachePolicy,
    Source,
    UnopenedSource,
    What,
    cache_side,
    closing_source,
    find_source,
    fingerprint,
    is_benchmark,
    select_names,
)
from propos.runs import Run

Why = Literal["in memory", "gone", "unreadable", "changed"]


class NoImages(InputError):  # noqa: N818 - reads as what is the matter
    """A run's images cannot be opened; `why` is the reason for programs."""

    def __init__(self, why: Why, sentence: str) -> None:
        super().__init__(sentence)
        self.why = why


@contextmanager
def opened(
    unopened: UnopenedSource,
    config: Config,
    channels: int | None = None,
    keep: CachePolicy = "build",
    show_task: ShowTask = show_nothing,
) -> Iterator[Source]:
    """Open images at the size that the settings need; decoding stops at the end of the block.

    Images that are read once, for their features, are decoded then and not kept.
    """
    if config.start.has_frozen_part and keep == "build":
        keep = "use"
    side, shaped = _decoded_side(config)
    with show_task("Reading images") as progress:
        source = unopened.open(side, channels, progress, keep, shaped)
    with closing_source(source):
        yield source


def _decoded_side(config: Config) -> tuple[int, bool]:
    """Return the side at which images are decoded, and whether they keep their shape.

    For a network of the hub it is the side of its own preprocessing, so that images are resized once.
    """
    if config.start.description is None or not config.start.has_frozen_part:
        return cache_side(config.views), config.views.keep == "shapes"
    prepared = Description.from_json(config.start.description, str(config.start.network)).preparation
    return prepared.short or prepared.side, prepared.short is not None


@contextmanager
def open_run_images(
    run: Run, data: str | Path | None = None, show_task: ShowTask = show_nothing, what: What | None = None
) -> Iterator[Source]:
    """Open the images of a run in the way it read them, or raise `NoImages`.

    A damaged image is left out of a cache and is grey in a stream, so a run that streamed is streamed again. `data`
    overrides the run's data folder; `what` gives images again that were in memory only.
    """
    config, streamed = run.config, run.info.source.streamed
    what = config.source if what is None else what
    if what is None:
        raise NoImages(
            "in memory", f"{run.path}: was trained on an array in memory, which is not saved in a run folder"
        )
    channels = None if config.pixels.mean is None else len(config.pixels.mean)
    with ExitStack() as stack:
        try:
            pixels = config.pixels
            unopened = find_source(
                what, pixels.black, pixels.white, config.labels, data or _data_folder(config), show_task
            )
            reading = opened(unopened, config, channels, "stream" if streamed else "build", show_task)
            source = stack.enter_context(reading)
        except InputError as error:
            raise NoImages("gone" if _missing(what) else "unreadable", str(error)) from None
        same = _same_images(run, source)
        yield select_names(same, run.table.images) if run.finished else same


def _data_folder(config: Config) -> str | None:
    """Return a run's folder of data sets; None, for PROPOS_DATA, if it is no longer there."""
    return config.data if config.data is not None and Path(config.data).is_dir() else None


def _missing(what: What) -> bool:
    """Return whether a path does not exist any more."""
    return isinstance(what, str | Path) and not is_benchmark(what) and not Path(what).exists()


def _same_images(run: Run, source: Source) -> Source:
    """Return the images the run started with, without damaged ones if it read a cache; refuse others."""
    if fingerprint(source) == run.info.source.fingerprint:
        return source
    damaged = {name for name, _ in run.skipped}
    kept = [name for name in source.image_names() if name not in damaged] if damaged else ()
    if kept and fingerprint(some := select_names(source, kept)) == run.info.source.fingerprint:
        return some
    raise NoImages("changed", f"{run.config.source or run.path}: its images are not those the run started with")


@contextmanager
def open_like(
    config: Config,
    what: What,
    data: str | Path | None = None,
    labels: str | None = None,
    keep: CachePolicy = "build",
    show_task: ShowTask = show_nothing,
) -> Iterator[Source]:
    """Open other images in the way a run with these settings read its own."""
    assert config.pixels.mean is not None
    unopened = find_source(
        what, config.pixels.black, config.pixels.white, labels, data or _data_folder(config), show_task
    )
    with opened(unopened, config, len(config.pixels.mean), keep, show_task) as source:
        yield source
