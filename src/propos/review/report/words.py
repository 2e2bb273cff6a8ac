"""A run's settings in plain words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from propos.common.durations import duration
from propos.common.words import counted
from propos.config import Config, method_in_words
from propos.runs import CorrectedRun, RunInfo, StartInfo

VIEWS = {"natural": "photographs", "greyscale": "small grey pictures", "digits": "written characters"}


def settings_in_words(config: Config, info: RunInfo, images: int, corrected: CorrectedRun) -> list[tuple[str, str]]:
    """Return what a person would want to know of how the run was made, as pairs of name and words."""
    width = corrected.prototypes.vectors.shape[1]
    return [
        ("Images", f"{images:,} from {info.source.name or config.source or 'an array in memory'}"),
        ("Clusters", f"{len(corrected.clusters):,}, {'corrected by hand' if corrected.regrouped else _asked(config)}"),
        ("Method", f"{method_in_words(config)}{_recipe(config)}"),
        *(_learnt(config, info, width) if info.start is None else _started(config, info, info.start)),
        *_own_settings(config),
        ("Seed", str(config.seed)),
        ("Command", info.command or "not recorded"),
        ("Begun", _moment(info.started)),
    ]


def _learnt(config: Config, info: RunInfo, width: int) -> list[tuple[str, str]]:
    """Say how a run learnt from its images."""
    network, views = config.network, config.views
    return [
        _training(config, info),
        ("Network", f"{network.backbone}, embeddings of {width} numbers"),
        ("Views", f"{views.size}×{views.size} pixels, drawn as for {VIEWS.get(views.preset, views.preset)}"),
    ]


def _training(config: Config, info: RunInfo) -> tuple[str, str]:
    train = config.train
    epochs = counted(train.epochs, "epoch")
    return "Training", f"{epochs} in batches of {train.batch_size * train.accumulate:,}{_time(info)}"


def _started(config: Config, info: RunInfo, start: StartInfo) -> list[tuple[str, str]]:
    """Say which pretrained network saw a run's images, and what its weights had seen."""
    network = config.network
    kept = f"{network.components} main directions, each divided by its spread to the power {network.whitening:g}"
    trained = config.method != "kmeans-features"
    if (not trained or config.start.learns != "nothing") and config.estep.averaged:
        kept += f"; k-means from averages with the {config.estep.averaged} nearest"
    tuned = {"nothing": "left as it is", "last": "its last stage tuned to these images", "all": "tuned to these images"}
    return [
        *([_training(config, info)] if trained else []),
        ("Seen by", f"{start.network}, pretrained and {tuned[config.start.learns]}{'' if trained else _time(info)}"),
        ("Its weights", f"had seen: {start.seen}; licence: {start.licence}"),
        ("Features", kept),
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


def _own_settings(config: Config) -> list[tuple[str, str]]:
    """Return the method's own settings by name, but those that are not set."""
    own = config.sections.get(config.method, {})
    words = [f"{key.replace('_', ' ')} {_value(value)}" for key, value in own.items() if value is not None]
    return [("Settings", ", ".join(words))] if words else []


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " and ".join(_value(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
