"""A run's settings in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from propos.config import Config
from propos.durations import duration

VIEWS = {"natural": "photographs", "greyscale": "small grey pictures", "digits": "written characters"}
METHODS = {"propos": "ProPos", "byol": "BYOL"}


def settings_in_words(config: Config, info: Mapping[str, Any], images: int, clusters: int) -> list[tuple[str, str]]:
    """Return what a person would want to know of how the run was made, as pairs of name and words."""
    network, train = config.network, config.train
    size = config.views.size
    return [
        ("Images", f"{images:,} from {info.get('source', {}).get('name') or config.source or 'an array in memory'}"),
        ("Clusters", f"{clusters:,}, {_asked(config)}"),
        ("Method", f"{METHODS.get(config.method, config.method)}{_recipe(config)}"),
        ("Training", f"{train.epochs:,} epochs in batches of {train.batch_size * train.accumulate:,}{_time(info)}"),
        ("Network", f"{network.backbone}, embeddings of {network.dimension} numbers"),
        ("Views", f"{size}×{size} pixels, drawn as for {VIEWS.get(config.views.preset, config.views.preset)}"),
        *_scattering(config),
        ("Seed", str(config.seed)),
        ("Command", str(info.get("command", "not recorded"))),
        ("Begun", _moment(info.get("started"))),
    ]


def _asked(config: Config) -> str:
    chosen = config.suggest.range
    return "as asked for" if chosen is None else f"chosen from {chosen[0]:,} to {chosen[1]:,}"


def _moment(started: object) -> str:
    """Say a recorded time as people do."""
    try:
        moment = datetime.fromisoformat(str(started)).astimezone(UTC)
    except ValueError:
        return "not recorded"
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def _recipe(config: Config) -> str:
    return f", recipe {config.recipe}" if config.recipe else ""


def _time(info: Mapping[str, Any]) -> str:
    seconds = info.get("seconds")
    if not isinstance(seconds, int | float) or seconds <= 0:
        return ""
    return f", {duration(seconds)} on {info.get('device', 'an unknown device')}"


def _scattering(config: Config) -> list[tuple[str, str]]:
    if config.method != "propos":
        return []
    return [("Scattering", f"clusters are pushed apart from epoch {config.psl_start} on, weight {config.psl.weight:g}")]
