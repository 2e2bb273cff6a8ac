"""A study for a laptop: both losses, each without the other, on two small sets, compared seed by seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from propos.study.figures import TextTable
from propos.study.reproduce.cells import Setup
from propos.study.reproduce.curves import over_training
from propos.study.reproduce.elements import Column, Entry, Part, Table
from propos.study.reproduce.items import ABLATION, LOSSES, losses
from propos.study.reproduce.paper import PaperNumber, paper_number
from propos.study.reproduce.results import Results
from propos.study.reproduce.score_tables import MEASURES, SCORES

ABLATED_IN = "table-6"
WHOLE = "ProPos"
SEEN = ("accuracy", "nmi")  # by which methods are put in order
MINUTE = 60.0


def study(results: Results) -> list[Part]:
    """Return scores, measures of embeddings and clusters, methods compared seed by seed, and curves.

    A set without finished cells has no curves, unless no set has any.
    """
    sets = {setup.set: results.head(setup) for setup in losses()}
    parts: list[Part] = [_scores(results, sets), _health(results, sets), _orders(results, sets)]
    begun = {data: name for data, name in sets.items() if any(_finished(results, data, method) for method in LOSSES)}
    for data, name in (begun or sets).items():
        lines = {method: _setup(data, method) for method in LOSSES}
        parts += [
            over_training(results, f"{name}: NMI", "nmi", lines),
            over_training(results, f"{name}: standard deviation of embeddings", "uniformity_std", lines),
            over_training(results, f"{name}: smallest cluster over largest", "imbalance_ratio", lines),
        ]
    return parts


def _finished(results: Results, data: str, method: str) -> bool:
    return bool(results.by_seed(_setup(data, method), "nmi"))


def _setup(data: str, method: str) -> Setup:
    return next(each for each in losses() if (each.data, each.method) == (data, ABLATION[method]))


def _scores(results: Results, sets: dict[str, str]) -> Table:
    def entry(method: str, data: str, score: str) -> Entry:
        return Entry(results.score(_setup(data, method), MEASURES[score]), _paper_number(method, sets[data], score))

    columns = [Column(name, score) for name in sets.values() for score in SCORES]
    return Table(columns, [(m, [entry(m, data, score) for data in sets for score in SCORES]) for m in LOSSES])


def _paper_number(method: str, name: str, score: str) -> PaperNumber | None:
    return paper_number(ABLATED_IN, method, name, score)


def _health(results: Results, sets: dict[str, str]) -> Table:
    """Return how evenly embeddings and clusters are spread, and what training took."""

    def entries(method: str, data: str) -> Sequence[Entry]:
        setup = _setup(data, method)
        even = math.sqrt(next(task.config.network.dimension for c, task in results.tasks.items() if c.setup == setup))
        return (
            Entry(results.score(setup, "uniformity_std", 100 * even), None),
            Entry(results.score(setup, "imbalance_ratio"), None),
            Entry(results.per_run(setup, lambda run: run.info.processor_seconds / MINUTE), None),
        )

    names = ("spread, % of even", "smallest cluster, % of largest", "minutes of one core")
    columns = [Column(name, each) for name in sets.values() for each in names]
    return Table(columns, [(m, [entry for data in sets for entry in entries(m, data)]) for m in LOSSES])


def _orders(results: Results, sets: dict[str, str]) -> TextTable:
    """Return how far ProPos is ahead of the others, in the paper and here, and for how many seeds."""
    head = [f"{WHOLE} ahead of", *(f"{name}, {score}" for name in sets.values() for score in SEEN)]
    head.insert(1, "paper, CIFAR-10 (accuracy, nmi)")
    rows = []
    for method in LOSSES:
        if method != WHOLE:
            here = [_ahead(results, data, method, score) for data in sets for score in SEEN]
            rows.append([method, _ahead_in_paper(method), *here])
    return TextTable(head, rows)


def _ahead(results: Results, data: str, method: str, score: str) -> str:
    """Return the mean difference over seeds, each compared with the same seed, and how often it is positive."""
    whole, other = results.by_seed(_setup(data, WHOLE), score), results.by_seed(_setup(data, method), score)
    gaps = [100 * (whole[seed] - other[seed]) for seed in sorted(whole.keys() & other.keys())]
    if not gaps:
        return results.missing_reason(_setup(data, method))
    return f"{fmean(gaps):+.1f}, in {sum(gap > 0 for gap in gaps)} of {len(gaps)}"


def _ahead_in_paper(method: str) -> str:
    gaps = []
    for score in ("ACC", "NMI"):
        whole, other = _paper_number(WHOLE, "CIFAR-10", score), _paper_number(method, "CIFAR-10", score)
        assert whole is not None
        assert other is not None
        gaps.append(f"{whole.value - other.value:+.1f}")
    return ", ".join(gaps)
