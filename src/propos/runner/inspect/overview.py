"""An overview of a source, and of what `propos run` would do with it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from propos.data import UnopenedSource
from propos.data.files.survey import survey
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
        images=len(decision.source),
        channels=unopened.channels,
        height=unopened.height,
        width=unopened.width,
        notes=list(decision.source.notes),
        folders=_classes(unopened),
        files=_files(unopened, decision),
        planned=_planned(decision),
    )


def _files(unopened: UnopenedSource, decision: Decision) -> Files:
    seen = None if unopened.headers is None else survey(unopened.headers)
    left_out = {skipped.path for skipped in decision.source.skipped}  # some were found only when they were decoded
    headers = [] if seen is None else [header for header in seen.headers if header.entry.name not in left_out]
    sizes = Counter(f"{header.width}×{header.height}" for header in headers)
    if seen is None:
        sizes[f"{unopened.width}×{unopened.height}"] = unopened.images
    return Files(
        formats=dict(Counter(header.entry.kind for header in headers).most_common()),
        sizes=dict(sizes.most_common()),
        skipped={skipped.path: skipped.reason for skipped in decision.source.skipped},
        duplicates=[] if seen is None else seen.duplicates,
        tiny=[h.entry.name for h in headers if min(h.width, h.height) < TINY_SIDE and seen and not seen.common_size],
        odd=[h.entry.name for h in headers if max(h.width, h.height) > ODD_ASPECT * min(h.width, h.height)],
    )


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
