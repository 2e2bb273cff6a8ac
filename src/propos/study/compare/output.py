"""A comparison written down: Markdown to read, CSV and JSON to compute with, SVG and PNG to look at."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from propos.common.durations import duration
from propos.common.plurals import counted
from propos.common.spreadsheets import guarded
from propos.runs import write_atomically
from propos.study.compare.results import ABOUT, BY_HEAD, DIGITS, SCORES, Row, summaries
from propos.study.compare.state import State
from propos.study.figures import Dots, draw, markdown_table

NOT_YET = "–"


def title(state: State) -> str:
    """Return the title: methods and images."""
    return f"{counted(len(state.methods), 'method')} on {state.name}, {state.images:,} images"


def notes(state: State, rows: Sequence[Row]) -> list[str]:
    """Return notes that explain the numbers."""
    expected = len(state.methods) * state.seeds
    taken = sum(row.numbers["seconds"] for row in rows)
    asked = state.asked
    length = (
        f"about {asked['time']} each"
        if asked["time"]
        else f"{counted(asked['epochs'], 'epoch')} each"
        if asked["epochs"]
        else "each for the epochs of its recipe"
    )
    lines = [
        f"{len(rows)} of {expected} cells are finished ({counted(len(state.methods), 'method')}, "
        f"{counted(state.seeds, 'seed')}); total time {duration(taken)}. Trained {length}.",
        "Mean ± standard deviation over seeds, at the last E-step: no epoch was selected. Differences below these "
        "deviations are not significant with so few seeds.",
        "spread: of the embeddings, relative to a uniform distribution; balance: smallest over largest cluster; seeds "
        "agree: mean NMI between two seeds' clusters, without labels; processor seconds: of the training process; "
        "MB: its peak memory, including Python and torch.",
    ]
    if not state.labelled:
        lines.insert(1, "The images have no labels, so there are no scores.")
    return lines


def table(state: State, rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the lines of the table of means."""
    columns = {**(SCORES if state.labelled else {}), **ABOUT}
    head = ["method", "seeds", *columns.values(), "seeds agree"]
    lines = []
    for each in summaries(state.methods, rows):
        means, agreed = each.means, each.agreement
        words = [_mean(means.get(name), DIGITS.get(name, 3)) for name in columns]
        lines.append([each.method, str(len(each.rows)), *words, NOT_YET if agreed is None else f"{agreed:.3f}"])
        if state.labelled and any(name in means for name in BY_HEAD):
            named = {shown: name for name, shown in BY_HEAD.items()}
            by_head = [_mean(means.get(named[word]), 3) if word in named else "" for word in columns.values()]
            lines.append([f"{each.method}, by its head", "", *by_head, ""])
    empty = [""] * (len(head) - 3)
    lines += [[method, "0", f"not compared: {why}", *empty] for method, why in state.refused.items()]
    return head, lines


def _mean(found: tuple[float, float | None] | None, digits: int) -> str:
    if found is None:
        return NOT_YET
    mean, sd = found
    return f"{mean:,.{digits}f}" + ("" if sd is None else f" ± {sd:,.{digits}f}")


def plain_table(state: State, rows: Sequence[Row]) -> list[str]:
    """Return the table as lines for a terminal."""
    head, lines = table(state, rows)
    measured = [head, *lines[: len(lines) - len(state.refused)]]  # why one is not compared runs on over the columns
    widths = [max(len(line[column]) for line in measured) for column in range(len(head))]
    widths[0] = max(len(line[0]) for line in [head, *lines])
    return [
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in [head, *lines]
    ]


def markdown(state: State, rows: Sequence[Row]) -> str:
    """Return the comparison as Markdown."""
    head, lines = table(state, rows)
    words = [f"# {title(state)}", "", *(f"{line}\n" for line in notes(state, rows)), *markdown_table(head, lines), ""]
    return "\n".join([*words, f"![{title(state)}](compare.svg)", ""])


def as_csv(rows: Sequence[Row]) -> str:
    """Return a line a cell."""
    names = [*SCORES, *BY_HEAD, *ABOUT]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["method", "seed", *names, "run"])
    for row in rows:
        numbers = [row.numbers.get(name, "") for name in names]
        writer.writerow([guarded(row.cell.method), row.cell.seed, *numbers, guarded(row.folder)])
    return text.getvalue()


def as_json(state: State, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the comparison as JSON: the request, each cell, each method's means."""
    return {
        "asked": state.asked,
        "source": {"name": state.name, "images": state.images, "labelled": state.labelled},
        "seeds": state.seeds,
        "cells": [{"method": row.cell.method, "seed": row.cell.seed, "run": row.folder, **row.numbers} for row in rows],
        "methods": [
            {
                "method": each.method,
                "seeds": len(each.rows),
                "agreement": each.agreement,
                "mean": {name: mean for name, (mean, _) in each.means.items()},
                "sd": {name: sd for name, (_, sd) in each.means.items()},
            }
            for each in summaries(state.methods, rows)
        ],
        "refused": state.refused,
    }


def figure(state: State, rows: Sequence[Row]) -> list[Dots]:
    """Return what is drawn: a row of dots for each method, one a seed."""
    shown = {"accuracy": "accuracy", "nmi": "NMI"} if state.labelled else {"spread": "spread of the embeddings"}
    costs = {"processor_seconds": "processor seconds", "megabytes": "memory, MB"}
    found = summaries(state.methods, rows)
    return [
        Dots(words, [(each.method, each.values(name)) for each in found], from_zero=name in costs)
        for name, words in (shown | costs).items()
    ]


def write_tables(state: State, rows: Sequence[Row], out: Path) -> None:
    """Write the results so far as text."""
    write_atomically(out / "compare.md", markdown(state, rows).encode())
    write_atomically(out / "compare.csv", as_csv(rows).encode())
    write_atomically(out / "compare.json", f"{json.dumps(as_json(state, rows), indent=1)}\n".encode())


def write_figure(state: State, rows: Sequence[Row], out: Path) -> None:
    """Draw the results so far."""
    sheet = draw(figure(state, rows))
    write_atomically(out / "compare.svg", sheet.svg().encode())
    write_atomically(out / "compare.png", sheet.png())
