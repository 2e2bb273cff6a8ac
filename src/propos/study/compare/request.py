"""The request of a comparison: methods, source, duration and number of seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from propos.common.errors import InputError
from propos.methods import check_method, find_method, method_names
from propos.runner.recipes import sections_of
from propos.runner.request import Length, Origin, Output, Request, absolute_source, parse_duration


@dataclass(frozen=True)
class Cell:
    """A run of a comparison."""

    method: str
    seed: int

    def folder(self, out: Path) -> Path:
        """Return its run folder."""
        return out / "cells" / f"{self.method}-{self.seed}"

    @property
    def name(self) -> str:
        """Its display name."""
        return f"{self.method}, seed {self.seed}"


@dataclass(frozen=True)
class CompareRequest:
    """The request of a comparison."""

    source: str
    methods: Sequence[str]
    seeds: int = 3
    time: str | None = None
    epochs: int | None = None
    clusters: int | None = None
    recipe: str | None = None
    start: str | None = None
    labels: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Path | None = None

    def __post_init__(self) -> None:
        if self.time is not None:
            parse_duration(self.time)
        if self.time is not None and self.epochs is not None:
            raise InputError("--time and --epochs both set the number of epochs: use one of them")
        for key in self.settings.keys() & {"method", "seed"}:
            raise InputError(f"--set {key}: a comparison varies it: use --methods and --seeds")

    def shared_options(self) -> dict[str, Any]:
        """Return the options that all cells of a folder share."""
        return {
            "source": absolute_source(self.source),
            "time": self.time,
            "epochs": self.epochs,
            "clusters": self.clusters,
            "recipe": self.recipe,
            "start": self.start,
            "labels": self.labels,
            "settings": {key: _plain(value) for key, value in self.settings.items()},
        }

    def method_request(self, method: str) -> Request:
        """Return the request of `propos run`, without the settings of the other methods."""
        read, compared = (
            {section for name in names for section in sections_of(name, self.settings)}
            for names in ([method], self.methods)
        )
        settings = {key: value for key, value in self.settings.items() if _section(key) not in compared - read}
        return Request(
            source=self.source,
            clusters=self.clusters,
            method=method,
            recipe=self.recipe,
            seed=0,
            length=Length(epochs=self.epochs, time=self.time),
            settings=settings,
            labels=self.labels,
            data=self.data,
            origin=Origin(start=self.start),
            output=Output(command="propos compare"),
        )


def cells_of(methods: Sequence[str], seeds: int) -> list[Cell]:
    """Return the runs of some methods, seed by seed, so that first results come early."""
    return [Cell(method, seed) for seed in range(seeds) for method in methods]


def read_methods(text: str) -> list[str]:
    """Read names with commas between them, each once; `all` are those that learn from images alone."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError("--methods: no methods given: separate them with commas, as in --methods propos,byol")
    if names == ["all"]:
        return [name for name in method_names() if "images" in find_method(name).inputs]
    for name in names:
        check_method(name, "--methods")
    return list(dict.fromkeys(names))


def _section(key: str) -> str:
    return key.partition(".")[0]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
