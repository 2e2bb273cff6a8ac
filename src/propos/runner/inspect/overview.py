"""What is in a source, and what `propos run` would do with it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from propos.data import UnopenedSource
from propos.data.files.survey import Survey, survey
from propos.methods import find_method
from propos.runner import Decision
from propos.runner.recipes import EXPECTED_ACCURACY
from propos.training import estimate_seconds

TINY_SIDE = 16
ODD_ASPECT = 3.0
ESTIMATE_CLUSTERS = 10


@dataclass(frozen=True)
class Overview:
    """The findings, plain enough to print or to write as JSON."""

    images: int
    channels: int
    height: int
    width: int
    formats: dict[str, int]
    sizes: dict[str, int]  # width×height, the commonest first
    skipped: dict[str, str]
    notes: list[str]  # how the source was read, where that was not plain
    folders: str | None  # the classes that --labels folders takes, where folders tell images apart
    duplicates: list[list[str]]
    tiny: list[str]
    odd: list[str]
    recipe: str
    epochs: int | None  # None where nothing is trained
    measured_elsewhere: str | None  # what this recipe reached on other images, where that was measured
    views: str | None  # which changes leave these images what they are
    seconds: float


def look(plan: Decision) -> Overview:
    """Look at the images of a plan, which is not touched."""
    unopened = plan.unopened
    assert unopened is not None
    seen = None if unopened.headers is None else survey(unopened.headers)
    return _overview(unopened, seen, plan, estimate_seconds(plan.config, plan.source, plan.device))


def _overview(unopened: UnopenedSource, seen: Survey | None, plan: Decision, seconds: float) -> Overview:
    left_out = {skipped.path for skipped in plan.source.skipped}  # some only when they were decoded
    headers = [] if seen is None else [header for header in seen.headers if header.entry.name not in left_out]
    sizes = Counter(f"{header.width}×{header.height}" for header in headers)
    if seen is None:
        sizes[f"{unopened.width}×{unopened.height}"] = unopened.images
    return Overview(
        images=len(plan.source),
        channels=unopened.channels,
        height=unopened.height,
        width=unopened.width,
        formats=dict(Counter(header.entry.kind for header in headers).most_common()),
        sizes=dict(sizes.most_common()),
        skipped={skipped.path: skipped.reason for skipped in plan.source.skipped},
        notes=list(plan.source.notes),
        folders=_classes(unopened),
        duplicates=[] if seen is None else seen.duplicates,
        tiny=[h.entry.name for h in headers if min(h.width, h.height) < TINY_SIDE and seen and not seen.common_size],
        odd=[h.entry.name for h in headers if max(h.width, h.height) > ODD_ASPECT * min(h.width, h.height)],
        recipe=str(plan.config.recipe),
        epochs=plan.config.train.epochs if find_method(plan.config.method).trains else None,
        measured_elsewhere=EXPECTED_ACCURACY.get(str(plan.config.recipe)),
        views=plan.reason("views"),
        seconds=seconds,
    )


def _classes(unopened: UnopenedSource) -> str | None:
    folders = unopened.folders
    return None if folders is None or len(set(folders.classes)) == 1 else str(folders)
