"""The figures of a single run: sampled neighbours (4), and maps of embeddings (5, s2, s3, s4)."""

from __future__ import annotations

from typing import Any

from propos.study.figures import Chart, Map, Pictures, Series
from propos.study.reproduce.cells import Cell, Setup
from propos.study.reproduce.elements import Part
from propos.study.reproduce.items import SIGMAS
from propos.study.reproduce.results import Results

TITLES = {
    "byol": "BYOL",
    "propos-no-psl": "ProPos w/o PSL",
    "propos-no-psa": "ProPos w/o PSA",
    "propos": "ProPos",
}


def _read(results: Results, setup: Setup, name: str) -> dict[str, Any]:
    return results.measurement(Cell(setup, 0), name) or {}


def _dots(title: str, found: dict[str, Any], by: str = "class", ringed: tuple[int, ...] = ()) -> Map:
    return Map(title, found["x"], found["y"], found[by], ringed)


def figure_4(results: Results) -> list[Part]:
    """Return the share of sampled neighbours that keep their class, and some of them as pictures."""
    (setup,) = results.item.setups
    kept, shown = _read(results, setup, "preservation"), _read(results, setup, "neighbours")
    epochs = sorted(kept, key=int)
    lines = []
    for sigma in (f"{value:g}" for value in SIGMAS):
        places = [kept[epoch][sigma] for epoch in epochs]
        means, spreads = ([place[key] for place in places] for key in ("mean", "sd"))
        lines.append(Series(f"σ = {sigma}", [int(epoch) for epoch in epochs], means, spreads))
    parts: list[Part] = [Chart("(a) share of sampled neighbours that keep their class", "epoch", lines)]
    if shown:
        moment = f"(b) after epoch {shown['epoch']}, σ = {shown['sigma']:g}"
        title = f"{moment}; sampled: the image nearest to it"
        columns = ("input", "1-NN", "sampled", "sampled", "sampled")
        parts.append(Pictures(title, columns, [(f"image {n}", row) for n, row in enumerate(shown["rows"], start=1)]))
    return parts


def figure_5(results: Results) -> list[Part]:
    """Maps of the ablation, coloured by class."""
    found = {TITLES[setup.method]: _read(results, setup, "map") for setup in results.item.setups}
    return [_dots(f"{name}, by class", each["end"]) for name, each in found.items() if each]


def figure_s2(results: Results) -> list[Part]:
    """Maps at moments of training, coloured by class."""
    found = _read(results, results.item.setups[0], "moments")
    return [_dots(f"after epoch {epoch}, by class", found[epoch]) for epoch in sorted(found, key=int)]


def figure_s3(results: Results) -> list[Part]:
    """The map with the images that lie furthest from their prototypes ringed, and those images."""
    (setup,) = results.item.setups
    found, far = _read(results, setup, "map"), _read(results, setup, "outliers")
    if not found or not far:
        return []
    rows = [(f"{row['class']}, among {row['among']}", [row["picture"]]) for row in far["rows"]]
    return [
        _dots("by class; ringed: furthest from their prototypes", found["end"], ringed=tuple(far["dots"])),
        Pictures("furthest from their prototypes", ("image",), rows),
    ]


def figure_s4(results: Results) -> list[Part]:
    """The map of a run with five clusters, by cluster and by class."""
    found = _read(results, results.item.setups[0], "map")
    if not found:
        return []
    return [_dots("(a) by cluster", found["end"], "cluster"), _dots("(b) by class", found["end"])]
