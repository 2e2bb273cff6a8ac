"""Table 1: the data sets as they are found on this machine."""

from __future__ import annotations

from propos.data import benchmark
from propos.study.figures import TextTable
from propos.study.reproduce.elements import NOT_FOUND, Part
from propos.study.reproduce.images import find_set
from propos.study.reproduce.paper import paper
from propos.study.reproduce.results import Results


def table_1(results: Results) -> list[Part]:
    """Return the number of images and classes of each set, next to the paper's."""
    rows = []
    for row in paper()["table-1"]:
        name = row["set"].lower()
        found, known = find_set(name, results.paths.root), benchmark(name)
        here = NOT_FOUND if found is None else f"{found.images:,}"
        same = "" if found is None else "yes" if found.images == row["images"] else "no"
        size = f"{row['size']}×{row['size']}"
        rows.append((row["set"], known.splits[0], here, f"{row['images']:,}", same, f"{row['classes']:,}", size))
    head = ("set", "split", "images here", "the paper's", "the same", "classes", "trained at")
    return [TextTable(head, rows)]
