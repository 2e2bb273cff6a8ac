"""A run's settings in plain words."""

from __future__ import annotations

from datetime import UTC, datetime

from propos.config import Config
from propos.durations import duration
from propos.runs import RunInfo

VIEWS = {"natural": "photographs", "greyscale": "small grey pictures", "digits": "written characters"}
METHODS = {"propos": "ProPos", "byol": "BYOL"}


def settings_in_words(config: Config, info: RunInfo, images: int, clusters: int) -> list[tuple[str, str]]:
    """Return what a person would want to know of how the run was made, as pairs of name and words."""
    network, train = config.network, config.train
    size = config.views.size
    return [
        ("Images", f"{images:,} from {info.source.name or config.source or 'an array in memory'}"),
        ("Clusters", f"{clusters:,}, {_asked(config)}"),
        ("Method", f"{METHODS.get(config.method, config.method)}{_recipe(config)}"),
        ("Training", f"{train.epochs:,} epochs in batches of {train.batch_size * train.accumulate:,}{_time(info)}"),
        ("Network", f"{network.backbone}, embeddings of {network.dimension} numbers"),
        ("Views", f"{size}×{size} pixels, drawn as for {VIEWS.get(config.views.preset, config.views.preset)}"),
        *_scattering(config),
        ("Seed", str(config.seed)),
        ("Command", info.command or "not recorded"),
        ("Begun", _moment(info.started)),
    ]


def _asked(config: Config) -> str:
    chosen = config.suggest.range
    return "as asked for" if chosen is None else f"chosen from {chosen[0]:,} to {chosen[1]:,}"


def _moment(started: str | None) -> str:
    """Say a recorded time as people do."""
    try:
        moment = datetime.fromisoformat(str(started)).astimezone(UTC)
    except ValueError:
        return "not recorded"
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def _recipe(config: Config) -> str:
    return f", recipe {config.recipe}" if config.recipe else ""


def _time(info: RunInfo) -> str:
    seconds = info.seconds
    if seconds <= 0:
        return ""
    return f", {duration(seconds)} on {info.device}"


def _scattering(config: Config) -> list[tuple[str, str]]:
    if config.method != "propos":
        return []
    return [("Scattering", f"clusters are pushed apart from epoch {config.psl_start} on, weight {config.psl.weight:g}")]
