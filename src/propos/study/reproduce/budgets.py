"""Budgets: how a cell is trained; every setting that differs from the paper is listed.

`paper` is the paper's own recipe on all images: as its text has it, or as the authors released it. `small` and `tiny`
keep the method and the varied settings, and take the rest from one reduced recipe each, so that cells of one budget
are comparable. The precision is part of a cell's settings: it does not depend on the device.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from propos.common.errors import InputError
from propos.config import Config, NetworkSettings, TrainSettings, ViewSettings
from propos.methods import complete_sections, settings_of, stages_of
from propos.runner.recipes import build_recipe, for_method
from propos.study.reproduce.cells import Cell, Setup
from propos.study.reproduce.images import Images, is_available
from propos.study.reproduce.items import SUBSETS, USUAL_EPOCHS
from propos.training import stage_epochs

Size = Literal["tiny", "small", "paper"]
Version = Literal["text", "released"]
Precision = Literal["float32", "bfloat16", "float16"]
# The recipes of the authors' released configurations, by the method and the paper's recipe; other set-ups have none.
RELEASED = {
    ("propos", "cifar-10-r18"): "cifar-10-r18-released",
    ("propos", "cifar-20-r18"): "cifar-20-r18-released",
    ("propos", "cifar-20"): "cifar-20-r34-released",
    ("propos", "imagenet-dogs-224"): "imagenet-dogs-released",
    ("propos", "imagenet-1k"): "imagenet-1k-released",
    ("byol", "cifar-10-r18"): "byol-released",
}
LAMBDA = "propos.psl_weight"
PAPER_WIDTH = 256  # of the projection, which the figure of widths varies
PAPER_BATCH = 256
LARGE = "-224"  # how recipes for twice the usual size end, of which a reduced study has twice its own
KEPT = (0.0, 0.1, 0.5, 1.0)  # of the epochs: when weights are kept for figures 4 and s2
FIGURE_RUN = Setup("cifar-10", "cifar-10-r18")  # the run they look at, with its first seed
# What says whose images and which seed, and what a budget does not scale.
PERSONAL = ("source", "data", "labels", "recipe", "method", "clusters", "seed", "keep_epochs", "suggest.", "pixels.")


@dataclass(frozen=True)
class ReducedStudy:
    """A reduced study: its number of images, the recipe of all its cells, and its largest number of classes."""

    images: int
    classes: int | None
    side: int  # at which images are kept
    recipe: Config


def _clusterings(*clusters: int) -> dict[str, dict[str, Any]]:
    """Return the sections of methods that have further clusterings."""
    return {method: {"clusters": clusters} for method in ("pcl", "byol-pcl", "ifnd")}


SMALL = ReducedStudy(
    images=10_000,
    classes=None,
    side=32,
    recipe=Config(
        recipe="small study",
        views=ViewSettings(size=16, crop_scale=(0.2, 1.0)),
        network=NetworkSettings(width=0.25, hidden=512, dimension=128, momentum=0.99),
        train=TrainSettings(epochs=20, batch_size=64, lr=0.2, warmup=2),
        sections={"propos": {"psl_start": 10}, **_clusterings(40, 80, 160)},
    ),
)
TINY = ReducedStudy(
    images=200,
    classes=20,
    side=24,
    recipe=Config(
        recipe="tiny trial",
        views=ViewSettings(size=12, crop_scale=(0.2, 1.0)),
        network=NetworkSettings(width=0.125, hidden=64, dimension=32, momentum=0.9),
        train=TrainSettings(epochs=4, batch_size=50, lr=0.2, warmup=1),
        sections=_clusterings(12, 24, 48),
    ).with_settings({"estep.restarts": 3}),
)
REDUCED: dict[Size, ReducedStudy] = {"tiny": TINY, "small": SMALL}


@dataclass(frozen=True)
class Budget:
    """The size of the study, the version of the paper's settings, and the precision."""

    size: Size
    version: Version = "text"
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        if self.version == "released" and self.size != "paper":
            raise InputError(f"--as released: budget {self.size} has settings of its own; use --budget paper")

    def __str__(self) -> str:
        text = f"{self.size} (as released)" if self.version == "released" else self.size
        return text if self.precision == "float32" else f"{text} in {self.precision}"

    @classmethod
    def read(cls, state: Mapping[str, Any]) -> Budget | None:
        """Return the budget that was written, or None if it is not one."""
        size, version, precision = state.get("budget"), state.get("as", "text"), state.get("precision", "float32")
        if (
            size is None
            or size not in get_args(Size)
            or version not in get_args(Version)
            or precision not in get_args(Precision)
        ):
            return None
        return cls(size, version, precision)

    def plain(self) -> dict[str, str]:
        """Return what is written of it."""
        return {"budget": self.size, "as": self.version, "precision": self.precision}

    @property
    def folder(self) -> str:
        """The usual output folder."""
        parts = ["reproduce", self.size, "released" if self.version == "released" else "", self.precision]
        return "-".join(part for part in parts if part not in ("", "float32"))


@dataclass(frozen=True)
class Task:
    """A cell as a budget has it trained: complete settings but for what depends on the images, and which those are."""

    cell: Cell
    config: Config
    images: Images
    available: bool  # whether its images are on this machine

    @cached_property
    def key(self) -> str:
        """The name of its run folder: a hash of its settings and images, but not of the images' location.

        Settings at their defaults are left out, so that new settings do not change the names of finished cells.
        """
        settings = self.config.model_dump(mode="json", exclude={"source", "data"}, exclude_defaults=True)
        text = json.dumps([settings, asdict(self.images)], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    @property
    def scaled(self) -> dict[str, tuple[Any, Any]]:
        """The settings that differ from the paper: the paper's value and this one."""
        theirs, ours = (complete_sections(each).flat() for each in (paper_config(self.cell), self.config))
        return {k: (theirs[k], value) for k, value in ours.items() if not k.startswith(PERSONAL) and theirs[k] != value}


@cache
def task(cell: Cell, budget: Budget, root: Path | None) -> Task:
    """Return a cell as a budget has it trained, with stand-ins for absent images where it allows them."""
    available, precision = is_available(cell.setup.data, root), {"train.precision": budget.precision}
    if budget.size == "paper":
        config = released_config(cell) if budget.version == "released" else paper_config(cell)
        return Task(cell, config.with_settings(precision), Images(cell.setup.data), available)
    reduced = REDUCED[budget.size]
    images = Images(cell.setup.data, reduced.images, reduced.classes, reduced.side)
    if budget.size == "tiny" and not available:
        images, available = Images(cell.setup.data, reduced.images, reduced.classes, reduced.side, stand_in=True), True
    return Task(cell, reduced_config(cell, reduced).with_settings(precision), images, available)


def paper_config(cell: Cell) -> Config:
    """Return the settings that the paper's text has for a cell."""
    return _full_config(cell, cell.setup.recipe, dict(cell.setup.changes))


def released_config(cell: Cell) -> Config:
    """Return the settings that the released code has for a cell; where there is no configuration, those of the text.

    A λ that an item varies acts divided by the number of processes, as the recipe's own does.
    """
    setup, changes = cell.setup, dict(cell.setup.changes)
    family = "propos" if setup.method.startswith("propos-") else setup.method
    recipe = RELEASED.get((family, setup.recipe), setup.recipe)
    if LAMBDA in changes:
        changes[LAMBDA] *= _psl_weight(recipe) / _psl_weight(setup.recipe)
    return _full_config(cell, recipe, changes)


def _psl_weight(recipe: str) -> float:
    weight: float = complete_sections(build_recipe(recipe, "propos")).flat()[LAMBDA]
    return weight


def _full_config(cell: Cell, recipe: str, changes: dict[str, Any]) -> Config:
    config = build_recipe(recipe, cell.setup.method).with_settings({**changes, "seed": cell.seed})
    return config.with_settings({"keep_epochs": kept_epochs(cell, config)})


def reduced_config(cell: Cell, reduced: ReducedStudy) -> Config:
    """Return the reduced study's settings with the cell's varied settings: sizes scaled, all else unchanged."""
    setup, recipe = cell.setup, build_recipe(cell.setup.recipe, cell.setup.method)
    base = reduced.recipe.with_settings({"network.backbone": recipe.network.backbone})
    if setup.recipe.endswith(LARGE):
        base = base.with_settings({"views.size": 2 * base.views.size})
    config = for_method(base, setup.method, at_scale=False)
    batches = base.train.batch_size / PAPER_BATCH
    queue = settings_of(recipe).model_dump().get("queue_size")
    sizes = {f"{setup.method}.queue_size": queue} if queue else {}
    config = config.with_settings(
        {**_in_proportion({**sizes, **dict(setup.changes)}, base, batches), "seed": cell.seed}
    )
    return config.with_settings({"keep_epochs": kept_epochs(cell, config)})


def _in_proportion(changes: dict[str, Any], base: Config, batches: float) -> dict[str, Any]:
    """Scale the sizes that a cell varies as the recipe's own are."""
    if "train.epochs" in changes:
        changes["train.epochs"] = round(changes["train.epochs"] * base.train.epochs / int(USUAL_EPOCHS))
    if "network.dimension" in changes:
        changes["network.dimension"] = round(changes["network.dimension"] * base.network.dimension / PAPER_WIDTH)
    queues = {key: round(size * batches) for key, size in changes.items() if key.endswith(".queue_size")}
    return {**changes, **queues}


def kept_epochs(cell: Cell, config: Config) -> tuple[int, ...]:
    """Return the epochs whose weights are kept: a few of the run that figures need, and one that table 8 needs."""
    epochs = config.train.epochs
    if cell.setup.method == "scan" and cell.setup.set in SUBSETS:
        return (stage_epochs(stages_of(config), epochs)[-2].stop - 1,)  # before self-labelling
    if cell != Cell(FIGURE_RUN, 0):
        return ()
    return tuple(sorted({min(epochs - 1, round(share * epochs)) for share in KEPT}))


def list_scaled_settings(tasks: Iterable[Task]) -> list[str]:
    """Return the settings that were scaled down in some cells, one per line: the paper's values and these."""
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for each in {each.cell.setup: each for each in tasks}.values():  # seeds differ in nothing else
        for key, (theirs, ours) in each.scaled.items():
            both = found.setdefault(key, ({}, {}))
            both[0][shown(theirs)] = None
            both[1][shown(ours)] = None
    return [f"{key}: {', '.join(theirs)} → {', '.join(ours)}" for key, (theirs, ours) in found.items()]


def shown(value: Any) -> str:
    """Return a setting's value as text."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, tuple | list):
        return "(" + ", ".join(shown(each) for each in value) + ")"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
