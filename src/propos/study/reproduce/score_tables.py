"""Tables of clustering scores: every method of the paper's table, run or quoted, next to the paper's numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from propos.study.reproduce.cells import Setup
from propos.study.reproduce.elements import Column, Entry, Table
from propos.study.reproduce.items import (
    ABLATION,
    CIFAR,
    NAMES,
    TABLE_8,
    TABLE_9,
    compared,
    methods_run,
    probed_setups,
    split_and_size,
    varied,
)
from propos.study.reproduce.paper import methods_in, paper, paper_number, parse_number
from propos.study.reproduce.results import Results

MEASURES = {"NMI": "nmi", "ACC": "accuracy", "ARI": "ari", "AMI": "ami"}
SCORES = ("NMI", "ACC", "ARI")
BY_HEAD = "CC"  # scored by its cluster head, as in its paper and code
BY_KMEANS = "CC, by k-means on its instance head"


def comparison_table(
    results: Results, rows: Mapping[str, Mapping[str, Setup]], sets: Sequence[str], scores: Sequence[str] = SCORES
) -> Table:
    """Return a table with a row for each of `rows`, set-ups by the set's name, next to the paper's table."""
    table = results.item.id
    heads = {setup_name: setup_name for setup_name in sets}
    for setups in rows.values():
        heads |= {name: results.head(setup) for name, setup in setups.items()}
    return Table(
        [Column(heads[name], score) for name in sets for score in scores],
        [
            (method, [_entry(results, table, method, rows[method].get(name), name, s) for name in sets for s in scores])
            for method in rows
        ],
    )


def _entry(results: Results, table: str, method: str, setup: Setup | None, column: str, score: str) -> Entry:
    theirs = paper_number(table, method, column, score)
    if setup is None:
        return Entry(None, theirs)
    measure = MEASURES[score]
    ours = results.score(setup, f"head_{measure}" if method == BY_HEAD else measure)
    return Entry(ours, theirs)


def _rows(
    table: str, ran: Mapping[str, str], sets: Sequence[str], setup: Callable[[str, str], Setup] = compared
) -> dict[str, Mapping[str, Setup]]:
    """Return all methods of a table in its order; those that are only quoted have no set-ups."""
    return {
        method: {NAMES[data]: setup(data, ran[method]) for data in sets} if method in ran else {}
        for method in methods_in(table)
    }


def _with_kmeans_row(rows: dict[str, Mapping[str, Setup]]) -> dict[str, Mapping[str, Setup]]:
    """Add the k-means result of CC's runs below that of its head."""
    both: dict[str, Mapping[str, Setup]] = {}
    for method, setups in rows.items():
        both[method] = setups
        if method == BY_HEAD:
            both[BY_KMEANS] = setups
    return both


def table_2(results: Results) -> list[Table]:
    """Clustering of five sets."""
    sets = ("cifar-10", "cifar-20", "stl-10", "imagenet-10", "imagenet-dogs")
    rows = _with_kmeans_row(_rows("table-2", methods_run("table-2"), sets))
    return [comparison_table(results, rows, [NAMES[data] for data in sets])]


def table_3(results: Results) -> list[Table]:
    """Tiny-ImageNet."""
    rows = _with_kmeans_row(_rows("table-3", methods_run("table-3"), ["tiny-imagenet"]))
    return [comparison_table(results, rows, ["Tiny-ImageNet"])]


def table_4(results: Results) -> list[Table]:
    """ImageNet-1k: the paper follows PCL, whose AMI is of 25,000 clusters; ours of as many as classes is next to it."""
    rows = []
    for row, method in methods_run("table-4").items():
        setup = compared("imagenet-1k", method)
        theirs = paper_number("table-4", row, "ImageNet-1k", "AMI")
        rows.append(
            (row, [Entry(results.measured(setup, "finer", "ami"), theirs), Entry(results.score(setup, "ami"), None)])
        )
    head = results.head(results.item.setups[0])
    return [Table([Column(head, "AMI, 25 clusters a class"), Column(head, "AMI, one cluster a class")], rows)]


def table_5(results: Results) -> list[Table]:
    """The linear probe on ImageNet-1k."""
    setups, rows = probed_setups(), []
    for row in paper()["table-5"]:
        name = f"{row['method']}, {row['backbone']}, batch {row['batch']}, {row['epochs']} epochs"
        setup = setups.get((row["method"], row["epochs"]))
        ours = None if setup is None else results.measured(setup, "linear", "accuracy")
        rows.append((name, [Entry(ours, parse_number(row["ACC"]))]))
    return [Table([Column(results.head(results.item.setups[0]), "ACC")], rows)]


def table_6(results: Results) -> list[Table]:
    """The ablation."""
    rows = _with_kmeans_row(_rows("table-6", ABLATION, CIFAR, varied))
    return [comparison_table(results, rows, [NAMES[data] for data in CIFAR])]


def table_8(results: Results) -> list[Table]:
    """Subsets of ImageNet: validation images."""
    sets = list(dict.fromkeys(setup.data for setup in results.item.setups))
    heads = [results.head(Setup(data, data)) for data in sets]
    rows = []
    for row in methods_in("table-8"):
        measurement = "clustering" if "clustering step" in row else "validation"
        entries = []
        for data in sets:
            for score in ("NMI", "ARI"):
                ours = results.measured(Setup(data, data, TABLE_8[row]), measurement, MEASURES[score])
                entries.append(Entry(ours, paper_number("table-8", row, NAMES[data], score)))
        rows.append((row, entries))
    return [Table([Column(head, score) for head in heads for score in ("NMI", "ARI")], rows)]


def table_9(results: Results) -> list[Table]:
    """Long-tailed sets."""
    sets = ("cifar-10-lt", "cifar-20-lt")
    return [comparison_table(results, _rows("table-9", TABLE_9, sets), [NAMES[data] for data in sets])]


def table_s1(results: Results) -> list[Table]:
    """Without the test split, and with large images: two tables, for their sets differ."""
    rows = split_and_size()
    halves = (("Baseline (train+test)", "Exclude test set"), ("Baseline (96)", "Large image size (224)"))
    return [comparison_table(results, {name: rows[name] for name in half}, list(rows[half[0]])) for half in halves]
