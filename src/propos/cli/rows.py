"""Rows of a small table as CSV or JSON, for commands that list images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from propos.common.errors import InputError, refuse_to_overwrite

ENDINGS = (".csv", ".json")
Rows = Sequence[Sequence[object]]


def check_rows_path(path: Path) -> None:
    """Raise InputError if rows cannot be written to a path."""
    if path.suffix not in ENDINGS:
        raise InputError(f"{path}: name the file *.csv or *.json")
    refuse_to_overwrite(path)


def write_rows(columns: Sequence[str], rows: Rows, path: Path) -> None:
    """Write rows in the format of the path's ending."""
    import json

    from propos.runs import write_atomically

    if path.suffix == ".json":
        content = json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1, ensure_ascii=False)
        write_atomically(path, f"{content}\n".encode())
    else:
        write_atomically(path, as_csv(columns, rows).encode())


def as_csv(columns: Sequence[str], rows: Rows) -> str:
    """Return rows as CSV whose cells no spreadsheet takes for formulas."""
    import csv
    import io

    from propos.common.spreadsheets import guarded

    text = io.StringIO(newline="")
    cells = [["" if cell is None else guarded(str(cell)) for cell in row] for row in rows]
    csv.writer(text).writerows([columns, *cells])
    return text.getvalue()
