"""The request for a run, and the settings that it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from propos.common.errors import InputError, shown
from propos.common.plain import read_text
from propos.config import Config, from_yaml, parse_clusters
from propos.data import What, data_root, is_benchmark
from propos.networks import SHORT_NAMES, is_hub

INSTEAD = {"source": "SOURCE", "data": "--data FOLDER", "recipe": "--recipe NAME"}


@dataclass(frozen=True, kw_only=True)
class Length:
    """The length of training: a number of epochs, or a duration from which it follows."""

    epochs: int | None = None
    time: str | None = None  # 45s, 30m or 2h


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The network that training starts from."""

    start: str | None = None  # scratch or pretrained[:NAME]
    weights: Path | None = None  # the weights of a pretrained network
    earlier: Path | None = None  # a finished run to continue


@dataclass(frozen=True, kw_only=True)
class Output:
    """The run folder to write, and the command that run.json records."""

    out: Path | None = None
    command: str = "propos.run"


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of a run. Planning chooses whatever is None."""

    source: What | None = None
    clusters: int | str | tuple[int, int] | None = None  # a number, or a range to choose one from
    method: str | None = None
    recipe: str | None = None
    seed: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # by dotted key
    config: Path | Config | None = None  # complete settings
    labels: str | Shaped[np.ndarray, " N"] | None = None  # "folders", or one per image
    data: Path | None = None
    length: Length = field(default_factory=Length)
    origin: Origin = field(default_factory=Origin)
    output: Output = field(default_factory=Output)

    def given_labels(self) -> Shaped[np.ndarray, " N"] | None:
        """Return the labels, if they were given as an array."""
        return None if isinstance(self.labels, str) else self.labels


def check_start(request: Request) -> None:
    """Refuse a start that is none, and options that contradict it."""
    start = request.origin.start
    if start is not None and start != "scratch" and start.partition(":")[0] != "pretrained" and not is_hub(start):
        raise InputError(
            f"--start {start}: write scratch, pretrained, pretrained:NAME, {', '.join(SHORT_NAMES)}, hub:OWNER/NAME or "
            "hub:FOLDER; --from RUN continues a run"
        )
    if is_hub(start) and request.origin.weights is not None:
        raise InputError(f"--start {start} brings its own weights: leave out --weights, or give --start hub:FOLDER")
    if request.origin.weights is not None and start == "scratch":
        raise InputError("--start scratch and --weights contradict each other: use one of them")
    if request.origin.earlier is not None and (start or request.origin.weights):
        raise InputError("--from continues with the run's own network: leave out --start and --weights")


def wants_pretrained(request: Request) -> bool | None:
    """Return whether a pretrained start was asked for, or none; None where the images decide."""
    if request.origin.start is None:
        return True if request.origin.weights is not None else None
    return request.origin.start != "scratch"


def parse_duration(text: str) -> float:
    """Read 45s, 30m or 2h as seconds."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smh])", text.strip())
    if match is None or float(match[1]) == 0:
        raise InputError(f"--time {text[:40]}: write it as 45s, 30m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def given_config(request: Request) -> Config | None:
    """Return the complete settings that a file gives."""
    if request.config is not None and request.recipe is not None:
        raise InputError("--config and --recipe both give complete settings: use one of them")
    if request.config is None or isinstance(request.config, Config):
        return request.config
    return from_yaml(read_text(request.config), f"--config {request.config}")


def requested_settings(request: Request, what: What, given: Config | None) -> dict[str, Any]:
    """Return the settings that were asked for, options over those by key."""
    settings = dict(request.settings)
    if request.length.time is not None:
        parse_duration(request.length.time)
        if request.length.epochs is not None:
            raise InputError("--time and --epochs both set the number of epochs: use one of them")
        if "train.epochs" in settings:
            raise InputError("--time and --set train.epochs both set the number of epochs: use one of them")
    for key in INSTEAD.keys() & settings.keys():
        raise InputError(f"--set {key}: give the {key} as {INSTEAD[key]} instead")
    labels = request.labels if isinstance(request.labels, str) else None
    if labels not in (None, "folders"):
        raise InputError(
            f"--labels {shown(labels, quoted=False)}: a run takes only folders here; to score it against a table: "
            f"propos evaluate RUN --labels {shown(labels, quoted=False)}"
        )
    direct = {"method": request.method, "seed": request.seed, "labels": labels}
    settings |= {key: value for key, value in direct.items() if value is not None}
    if request.clusters is not None:
        settings |= parse_clusters(format_clusters(request.clusters))
    elif settings.get("clusters") is not None:
        settings.setdefault("suggest.range", None)  # that of --config does not hold for another number
    return {**settings, "source": absolute_source(what), "data": _root(what, request, given)}


def format_clusters(clusters: int | str | tuple[int, int]) -> str:
    """Return a number or a range of them as the command line takes it."""
    return "..".join(str(number) for number in clusters) if isinstance(clusters, tuple) else str(clusters)


def absolute_source(what: What) -> str | None:
    """Return what names a source wherever a later command is started; nothing for what is only in memory."""
    if not isinstance(what, str | Path):
        return None
    return str(Path(what).resolve()) if Path(what).exists() else str(what)


def run_name(what: What) -> str:
    """Return what the runs of a source are called: as a person calls it, so that links are not followed."""
    if not isinstance(what, str | Path):
        return "images"
    path = Path(what)
    if path.name in ("", ".."):  # it says where, and no name
        path = path.resolve()
    return (path.name if path.is_dir() else path.stem).replace(":", "-")


def _root(what: What, request: Request, given: Config | None) -> str | None:
    """Return the data root to record: what names a published set alone does not say where it is."""
    if not is_benchmark(what):
        return None
    root = data_root(request.data or (given.data if given else None))
    return None if root is None else str(root)
