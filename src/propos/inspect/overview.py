"""What is in a source, and what `propos run` would do with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from propos.config import Config
from propos.data import Source, UnopenedSource, cache_side, find_source
from propos.data.files.survey import Survey, survey
from propos.recipes import build_recipe, choose_recipe
from propos.training import estimate_seconds, prepare

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
    duplicates: list[list[str]]
    tiny: list[str]
    odd: list[str]
    recipe: str
    seconds: float


def look(
    what: str,
    clusters: int | None,
    device: torch.device,
    progress: Callable[[int, int], object] | None = None,
    data: Path | None = None,
) -> tuple[Overview, Config, Source]:
    """Look at a source; return also the settings and the source that a run would train on."""
    unopened = find_source(what, data=data)
    seen = None if unopened.headers is None else survey(unopened.headers)
    recipe, _ = choose_recipe(unopened, device.type)
    config = build_recipe(recipe)
    source = unopened.open(cache_side(config.views), progress=progress)
    if clusters is None and source.labels is None:
        clusters = min(ESTIMATE_CLUSTERS, len(source))
    config = prepare(config.with_settings({"clusters": clusters}), source)
    return _overview(unopened, seen, source, recipe, estimate_seconds(config, source, device)), config, source


def _overview(unopened: UnopenedSource, seen: Survey | None, source: Source, recipe: str, seconds: float) -> Overview:
    headers = [] if seen is None else seen.headers
    sizes = Counter(f"{header.width}×{header.height}" for header in headers)
    if seen is None:
        sizes[f"{unopened.width}×{unopened.height}"] = unopened.images
    return Overview(
        images=len(source),
        channels=unopened.channels,
        height=unopened.height,
        width=unopened.width,
        formats={} if seen is None else seen.formats,
        sizes=dict(sizes.most_common()),
        skipped={skipped.path: skipped.reason for skipped in source.skipped},
        duplicates=[] if seen is None else seen.duplicates,
        tiny=[h.entry.name for h in headers if min(h.width, h.height) < TINY_SIDE and seen and not seen.common_size],
        odd=[h.entry.name for h in headers if max(h.width, h.height) > ODD_ASPECT * min(h.width, h.height)],
        recipe=recipe,
        seconds=seconds,
    )
