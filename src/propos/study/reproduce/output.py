"""Writing items as Markdown, CSV, SVG and PNG."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from propos.common.durations import duration
from propos.common.spreadsheets import guarded
from propos.runs import write_atomically
from propos.study.figures import Chart, Map, Pictures, TextTable, draw, markdown_table
from propos.study.reproduce.elements import QUOTED, Assembled, Entry, Part, Table

WITHIN = {True: "✓", False: "✗", None: ""}


def format_ours(entry: Entry, digits: int = 1) -> str:
    """Return our numbers as text: mean ± standard deviation, or why there are none."""
    ours = entry.ours
    if ours is None:
        return QUOTED if entry.paper is not None else "–"
    if ours.mean is None:
        return ours.why
    few = f" ({len(ours.values)} of {ours.requested} seeds)" if len(ours.values) < ours.requested else ""
    return f"{ours.mean:.{digits}f}" + ("" if ours.sd is None else f" ± {ours.sd:.{digits}f}") + few


def format_paper(entry: Entry) -> str:
    """Return the paper's number as it prints it."""
    if entry.paper is None:
        return "–"
    return f"{entry.paper.value:.1f}" + ("" if entry.paper.sd is None else f" ± {entry.paper.sd:.1f}")


def write_item(item: Assembled, folder: Path) -> None:
    """Write an item's files."""
    pictures = [part for part in item.parts if isinstance(part, Chart | Map | Pictures)]
    write_atomically(folder / f"{item.id}.md", markdown(item).encode())
    write_atomically(folder / f"{item.id}.csv", to_csv(item.parts).encode())
    if pictures:
        sheet = draw(pictures)
        write_atomically(folder / f"{item.id}.svg", sheet.svg().encode())
        write_atomically(folder / f"{item.id}.png", sheet.png())


def markdown(item: Assembled) -> str:
    """Return an item as Markdown."""
    lines = [f"# {item.id}: {item.title}", "", *(f"{line}\n" for line in summary(item))]
    for part in item.parts:
        if isinstance(part, Table):
            lines += [*markdown_table(*format_numbers(part)), ""]
        elif isinstance(part, TextTable):
            lines += [*markdown_table(part.head, part.rows), ""]
    if any(isinstance(part, Chart | Map | Pictures) for part in item.parts):
        lines += [f"![{item.title}]({item.id}.svg)", ""]
    lines += [f"- {note}" for note in item.notes]
    if item.scaled:
        lines += ["", "Not as in the paper (the paper's → here):", "", *(f"- {line}" for line in item.scaled)]
    return "\n".join(lines) + "\n"


def summary(item: Assembled) -> list[str]:
    """Return in words how many cells of an item are finished, and their training time."""
    done, all_ = item.cells
    if not all_:
        return []
    return [f"{done} of {all_} cells are finished; total training time {duration(item.seconds)}."]


def format_numbers(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return a table of numbers as text: for each column ours, and the paper's with ✓ or ✗.

    Columns that the paper does not have contain only ours.
    """
    compared = [any(entries[i].paper is not None for _, entries in table.rows) for i in range(len(table.columns))]
    head = [table.head]
    for column, papers in zip(table.columns, compared, strict=True):
        head += [f"{column.group} {column.name}", "paper"][: 1 + papers]
    rows = []
    for name, entries in table.rows:
        row = [name]
        for entry, papers in zip(entries, compared, strict=True):
            theirs = f"{format_paper(entry)} {WITHIN[entry.within]}".strip()
            row += [format_ours(entry, table.digits), theirs][: 1 + papers]
        rows.append(row)
    return head, rows


def to_csv(parts: Iterable[Part]) -> str:
    """Return all numbers of an item as CSV, one per line."""
    text = io.StringIO(newline="")
    rows: list[Sequence[object]] = [
        ("part", "column", "row", "ours", "sd", "seeds", "paper", "paper_sd", "within_tolerance")
    ]
    for part in parts:
        rows += _rows(part)
    csv.writer(text, lineterminator="\n").writerows([[_plain(value) for value in row] for row in rows])
    return text.getvalue()


def _plain(value: object) -> object:
    return guarded(value) if isinstance(value, str) else value


def _rows(part: Part) -> Iterable[Sequence[object]]:
    if isinstance(part, Table):
        for name, entries in part.rows:
            for column, entry in zip(part.columns, entries, strict=True):
                ours, said = entry.ours, entry.paper
                numbers = ("", "", 0) if ours is None or ours.mean is None else (ours.mean, ours.sd, len(ours.values))
                theirs = ("", "") if said is None else (said.value, said.sd)
                within = "" if entry.within is None else "yes" if entry.within else "no"
                yield (column.group, column.name, name, *numbers, *theirs, within)
    elif isinstance(part, TextTable):
        for row in part.rows:
            for word, head in zip(row[1:], part.head[1:], strict=True):
                yield ("", head, row[0], word, "", "", "", "", "")
    elif isinstance(part, Chart):
        for series in part.series:
            spreads = series.sd or [None] * len(series.x)
            for x, y, sd in zip(series.x, series.y, spreads, strict=True):
                where = part.ticks[round(x)] if part.ticks else x
                yield (part.title, series.name, where, y, "" if sd is None else sd, "", "", "", "")
    elif isinstance(part, Map):
        for x, y, group in zip(part.x, part.y, part.group, strict=True):
            yield (part.title, group, x, y, "", "", "", "", "")
