"""The figures of a score over one setting: figures 6, 7 and 8."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from propos.study.figures import Chart, Series
from propos.study.reproduce.budgets import shown
from propos.study.reproduce.cells import Setup
from propos.study.reproduce.elements import Ours, Part
from propos.study.reproduce.items import (
    AUGMENTATIONS,
    BACKBONES,
    CIFAR,
    EVERY,
    LAMBDAS,
    NUMBERS_OF_CLUSTERS,
    QUEUES,
    SIGMAS,
    WIDTHS,
    queues,
    varied,
)
from propos.study.reproduce.results import Results

BOTH = {"BYOL": "byol", "ProPos": "propos"}


def sweep_chart(title: str, across: str, ticks: Sequence[str], lines: Mapping[str, Iterable[Ours]]) -> Chart:
    """Return a chart of means over seeds, with a point for each value that has one."""
    series = []
    for name, places in lines.items():
        found = [(place, ours) for place, ours in enumerate(places) if ours.mean is not None]
        means = [ours.mean or 0.0 for _, ours in found]
        series.append(Series(name, [place for place, _ in found], means, [ours.sd for _, ours in found]))
    return Chart(title, across, series, ticks)


def _cifar(
    results: Results, across: str, changes: Mapping[str, Mapping[str, Any]], methods: Mapping[str, str]
) -> list[Part]:
    """Return a chart of NMI for each CIFAR set, a line a method, a place for each change."""
    charts: list[Part] = []
    for data in CIFAR:
        lines = {
            name: [results.score(varied(data, method, **change), "nmi") for change in changes.values()]
            for name, method in methods.items()
        }
        charts.append(sweep_chart(f"{results.head(varied(data))}, NMI", across, list(changes), lines))
    return charts


def _values(key: str, values: Iterable[Any]) -> dict[str, dict[str, Any]]:
    return {shown(value): {key: value} for value in values}


def figure_6(results: Results) -> list[Part]:
    """The number of clusters: ProPos trained with each, BYOL's embeddings clustered with each."""
    charts: list[Part] = []
    for data in CIFAR:
        byol = Setup(data, f"{data}-r18", "byol")
        lines = {
            "BYOL, clustered again": [results.measured(byol, "clusters", str(k), "nmi") for k in NUMBERS_OF_CLUSTERS],
            "ProPos": [results.score(varied(data, clusters=k), "nmi") for k in NUMBERS_OF_CLUSTERS],
        }
        ticks = [str(k) for k in NUMBERS_OF_CLUSTERS]
        charts.append(sweep_chart(f"{results.head(byol)}, NMI", "K", ticks, lines))
    return charts


def figure_7a(results: Results) -> list[Part]:
    """The number of epochs between runs of k-means."""
    return _cifar(results, "r, epochs between E-steps", _values("estep.every", EVERY), {"ProPos": "propos"})


def figure_7b(results: Results) -> list[Part]:
    """σ."""
    return _cifar(results, "σ", _values("propos.sigma", SIGMAS), {"ProPos": "propos"})


def figure_7c(results: Results) -> list[Part]:
    """λ."""
    return _cifar(results, "λ", _values("propos.psl_weight", LAMBDAS), {"ProPos": "propos"})


def figure_7d(results: Results) -> list[Part]:
    """The width of the projection."""
    return _cifar(results, "width of the projection, in the paper's terms", _values("network.dimension", WIDTHS), BOTH)


def figure_7e(results: Results) -> list[Part]:
    """The backbone."""
    return _cifar(results, "backbone", _values("network.backbone", BACKBONES), BOTH)


def figure_7f(results: Results) -> list[Part]:
    """Views without some of the augmentations."""
    return _cifar(results, "views", AUGMENTATIONS, BOTH)


def figure_8(results: Results) -> list[Part]:
    """The size of the queue."""
    names = {"NMI": "nmi", "ACC": "accuracy", "ARI": "ari"}
    ticks = [shown(size) for size in QUEUES]
    head = results.head(queues()[0])
    return [
        sweep_chart(f"{head}, {name}", "size of the queue, in the paper's terms", ticks, {"ProPos": places})
        for name, measure in names.items()
        for places in [[results.score(setup, measure) for setup in queues()]]
    ]
