"""A run's settings as text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from propos.common.durations import duration
from propos.common.plurals import counted
from propos.config import Config
from propos.runs import CorrectedRun, RunInfo, StartInfo

VIEWS = {"natural": "photographs", "greyscale": "small greyscale images", "digits": "written characters"}


def describe_settings(config: Config, info: RunInfo, images: int, corrected: CorrectedRun) -> list[tuple[str, str]]:
    """Return the settings of a run, as pairs of a name and a description."""
    width = corrected.prototypes.vectors.shape[1]
    return [
        ("Images", f"{images:,} from {info.source.name or config.source or 'an array in memory'}"),
        ("Clusters", f"{len(corrected.clusters):,}, {'corrected by hand' if corrected.regrouped else _asked(config)}"),
        ("Method", f"{info.method or config.method}{_recipe(config)}"),
        *(_learnt(config, info, width) if info.start is None else _started(config, info, info.start)),
        *_own_settings(config),
        ("Seed", str(config.seed)),
        ("Command", info.command or "not recorded"),
        ("Started", _moment(info.started)),
    ]


def _learnt(config: Config, info: RunInfo, width: int) -> list[tuple[str, str]]:
    """Describe training from scratch."""
    network, views = config.network, config.views
    return [
        _training(config, info),
        ("Network", f"{network.backbone}, embeddings of dimension {width}"),
        ("Views", f"{views.size}×{views.size} pixels, augmented as {VIEWS.get(views.preset, views.preset)}"),
    ]


def _training(config: Config, info: RunInfo) -> tuple[str, str]:
    train = config.train
    epochs = counted(train.epochs, "epoch")
    return "Training", f"{epochs} in batches of {train.batch_size * train.accumulate:,}{_time(info)}"


def _started(config: Config, info: RunInfo, start: StartInfo) -> list[tuple[str, str]]:
    """Describe the pretrained network, the data of its weights, and the features."""
    network = config.network
    kept = f"{network.components} principal components, each divided by its standard deviation^{network.whitening:g}"
    trained = config.method != "kmeans-features"
    if (not trained or config.start.learns != "nothing") and config.estep.averaged:
        kept += f"; k-means starts from images averaged with their {config.estep.averaged} nearest neighbours"
        kept += "" if trained else "; uneven clusters replace them if these hold together better"
    tuned = {"nothing": "frozen", "last": "its last stage trained on these images", "all": "trained on these images"}
    return [
        *([_training(config, info)] if trained else []),
        ("Network", f"{start.network}, pretrained, {tuned[config.start.learns]}{'' if trained else _time(info)}"),
        ("Pretrained on", f"{start.seen}; licence of the weights: {start.licence}"),
        ("Features", kept),
    ]


def _asked(config: Config) -> str:
    chosen = config.suggest.range
    return "as requested" if chosen is None else f"chosen from {chosen[0]:,} to {chosen[1]:,}"


def _moment(started: str | None) -> str:
    """Return a recorded time as text."""
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
    """Return the method's own settings that are set, by name."""
    own = config.sections.get(config.method, {})
    texts = [f"{key.replace('_', ' ')} {_value(value)}" for key, value in own.items() if value is not None]
    return [("Settings", ", ".join(texts))] if texts else []


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " and ".join(_value(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
