"""The figures of measures over training: figures 3 and s1."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, stdev

from propos.study.figures import Chart, Series
from propos.study.reproduce.cells import Setup
from propos.study.reproduce.elements import Part
from propos.study.reproduce.results import Results


def over_training(results: Results, title: str, measure: str, lines: Mapping[str, Setup]) -> Chart:
    """Return a measure of some set-ups over the epochs: the mean over seeds, and how far they spread."""
    series = []
    for name, setup in lines.items():
        curve = sorted(results.curve(setup, measure).items())
        spreads = [stdev(values) if len(values) > 1 else None for _, values in curve]
        series.append(Series(name, [epoch for epoch, _ in curve], [fmean(values) for _, values in curve], spreads))
    return Chart(title, "epoch", series, level=_reference(results, lines) if measure == "uniformity_std" else None)


def _reference(results: Results, lines: Mapping[str, Setup]) -> tuple[str, float] | None:
    """Return the spread of embeddings that are even on the sphere, 1/√d."""
    for setup in lines.values():
        for values in results.curve(setup, "uniformity_reference").values():
            return "even on the sphere", values[0]
    return None


def sorted_sizes(results: Results, lines: Mapping[str, Setup]) -> Chart:
    """Return how many images each cluster of the finished run has, largest first, of the first seed."""
    series = []
    for name, setup in lines.items():
        runs = [results.runs[cell] for cell in results.cells(setup) if cell in results.runs]
        whole = [run for run in runs if (run.path / "clusters.parquet").is_file()]  # kept cells may be without
        sizes = sorted((len(cluster.members) for cluster in whole[0].clusters), reverse=True) if whole else []
        series.append(Series(name, list(range(1, len(sizes) + 1)), sizes))
    return Chart("(c) images in each cluster at the end, first seed", "cluster, largest first", series)


def figure_3(results: Results) -> list[Part]:
    """BYOL against ProPos: uniformity, imbalance, cluster sizes, NMI."""
    byol, propos = results.item.setups
    lines = {"BYOL": byol, "ProPos": propos}
    return [
        over_training(results, "(a) standard deviation of embeddings", "uniformity_std", lines),
        over_training(results, "(b) smallest cluster over largest", "imbalance_ratio", lines),
        sorted_sizes(results, lines),
        over_training(results, "(d) NMI", "nmi", lines),
    ]


def figure_s1(results: Results) -> list[Part]:
    """PCL on MoCo against PCL on BYOL."""
    moco, byol = results.item.setups
    lines = {"PCL on MoCo": moco, "PCL on BYOL": byol}
    return [
        over_training(results, "NMI", "nmi", lines),
        over_training(results, "standard deviation of embeddings", "uniformity_std", lines),
    ]
