"""An overview of a source, and of what `propos run` would do with it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from propos.data import UnopenedSource, readable
from propos.data.files.images import Images
from propos.data.files.survey import count_formats, exact_duplicates
from propos.methods import find_method
from propos.runner import Decision
from propos.runner.recipes import EXPECTED_ACCURACY
from propos.training import estimate_seconds

TINY_SIDE = 16
ODD_ASPECT = 3.0
ESTIMATE_CLUSTERS = 10


@dataclass(frozen=True)
class Files:
    """The image files of a source: those read, those skipped, and those a person may want to look at."""

    formats: dict[str, int]
    sizes: dict[str, int]  # width×height, the commonest first
    skipped: dict[str, str]  # the reason by name
    duplicates: list[list[str]]
    tiny: list[str]
    odd: list[str]  # more than three times as wide as high, or as high as wide


@dataclass(frozen=True)
class Planned:
    """The run that `propos run` would make."""

    recipe: str
    epochs: int | None  # None: nothing is trained
    seconds: float
    reasons: dict[str, str]  # by what they are about
    measured_elsewhere: str | None  # accuracy of this recipe on other images, if it was measured


@dataclass(frozen=True)
class Overview:
    """The findings of `propos inspect`."""

    images: int
    channels: int
    height: int
    width: int
    notes: list[str]  # how the source was read
    folders: str | None  # the classes of --labels folders, if there is more than one
    files: Files
    planned: Planned

    def plain(self) -> dict[str, Any]:
        """Return all findings in one dictionary, for JSON."""
        every = asdict(self)
        files, planned = every.pop("files"), every.pop("planned")
        return {**every, **files, **planned, "views": planned["reasons"].get("views")}


def overview(decision: Decision) -> Overview:
    """Look through the images of a decision."""
    unopened = decision.unopened
    assert unopened is not None
    return Overview(
        images=int(readable(decision.source, np.arange(len(decision.source))).sum()),
        channels=unopened.channels,
        height=unopened.height,
        width=unopened.width,
        notes=list(decision.source.notes),
        folders=_classes(unopened),
        files=_files(unopened, decision),
        planned=_planned(decision),
    )


def _files(unopened: UnopenedSource, decision: Decision) -> Files:
    skipped = {each.path: each.reason for each in decision.source.skipped}
    found = unopened.scan
    if found is None:
        return Files({}, {f"{unopened.width}×{unopened.height}": unopened.images}, skipped, [], [], [])
    # Some were found to be damaged only when they were decoded.
    images = found.without(decision.source.skipped[len(found.skipped) :]).images
    longer = np.maximum(images.facts["width"], images.facts["height"])
    shorter = np.minimum(images.facts["width"], images.facts["height"])
    tiny = shorter < (0 if found.common_size else TINY_SIDE)
    return Files(
        formats=count_formats(images),
        sizes=_sizes(images),
        skipped=skipped,
        duplicates=[[images.names[at] for at in group] for group in exact_duplicates(images)],
        tiny=list(images.take(tiny).names),
        odd=list(images.take(longer > ODD_ASPECT * shorter).names),
    )


def _sizes(images: Images) -> dict[str, int]:
    """Count the images of each size, the commonest first; of equal counts, the one whose image comes first."""
    sizes, first, counts = np.unique(images.facts[["width", "height"]], return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))
    return {f"{sizes[at]['width']}×{sizes[at]['height']}": int(counts[at]) for at in order}


def _planned(decision: Decision) -> Planned:
    config = decision.config
    return Planned(
        recipe=str(config.recipe),
        epochs=config.train.epochs if find_method(config.method).trains else None,
        seconds=estimate_seconds(config, decision.source, decision.device),
        reasons={reason.about: reason.text for reason in decision.reasons},
        measured_elsewhere=EXPECTED_ACCURACY.get(str(config.recipe)),
    )


def _classes(unopened: UnopenedSource) -> str | None:
    folders = unopened.folders
    return None if folders is None or len(set(folders.classes)) == 1 else str(folders)
