"""The table of images, one row each, its output formats, and label files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from jaxtyping import Bool, Float, Int, Shaped

from propos.common.errors import InputError
from propos.common.spreadsheets import guarded, read_text
from propos.runs.atomic import write_atomically

TABLE_FORMATS = (".csv", ".parquet", ".json")
ROW_GROUP = 65_536  # rows of a Parquet row group


@dataclass(frozen=True)
class ImageTable:
    """The cluster, confidence and distance of each image."""

    images: list[str]
    cluster: Int[np.ndarray, " N"]
    confidence: Float[np.ndarray, " N"]
    distance: Float[np.ndarray, " N"]
    label: Shaped[np.ndarray, " N"] | None = None
    # In corrected runs and exports only: the name of each image's cluster, and whether a person confirmed it.
    name: Sequence[str | None] | None = None
    path: Sequence[str | None] | None = None  # in exports only: the names above the cluster in the tree, and its own
    confirmed: Bool[np.ndarray, " N"] | None = None
    split: Sequence[str | None] | None = None  # in exports only: train, val or test
    probability: Float[np.ndarray, " N"] | None = None  # in exports of audited runs only: that the label is right

    def parts(self, rows: int) -> Iterator[ImageTable]:
        """Yield the table in parts of some rows, so that a copy of it in another form is never whole."""
        for start in range(0, max(1, len(self.images)), rows):
            where = slice(start, start + rows)
            columns = {field.name: getattr(self, field.name) for field in fields(self)}
            yield replace(self, **{name: each[where] for name, each in columns.items() if each is not None})

    def to_arrow(self, first: int = 0) -> pa.Table:
        """Return the table as it is stored, its rows counted from `first`."""
        columns: dict[str, Any] = {
            "id": pa.array(np.arange(first, first + len(self.images)), pa.int64()),
            "image": pa.array(self.images, pa.string()),
            "cluster": pa.array(self.cluster, pa.int32()),
            **({} if self.name is None else {"name": pa.array(self.name, pa.string())}),
            **({} if self.path is None else {"path": pa.array(self.path, pa.string())}),
            "confidence": pa.array(self.confidence, pa.float32()),
            "distance": pa.array(self.distance, pa.float32()),
        }
        if self.probability is not None:
            columns["probability"] = pa.array(self.probability, pa.float32())
        if self.confirmed is not None:
            columns["confirmed"] = pa.array(self.confirmed, pa.bool_())
        if self.label is not None:
            columns["label"] = pa.array(self.label)
        if self.split is not None:
            columns["split"] = pa.array(self.split, pa.string())
        return pa.table(columns)


def write_table(table: ImageTable, path: Path, ending: str | None = None) -> None:
    """Write the table in the format of the path's ending, or of `ending`."""
    write_parts(table.parts(ROW_GROUP), path, ending)


def write_parts(parts: Iterable[ImageTable], path: Path, ending: str | None = None) -> int:
    """Write a table part by part and return its number of rows; the file appears only when it is complete."""
    ending = ending or path.suffix
    check_table_path(path, ending)
    write = {".parquet": _write_parquet, ".csv": _write_csv, ".json": _write_json}[ending]
    rows = 0

    def tables() -> Iterator[pa.Table]:
        nonlocal rows
        for part in parts:
            yield part.to_arrow(rows)
            rows += len(part.images)

    write_atomically(path, lambda file: write(tables(), file))
    return rows


def _write_csv(tables: Iterator[pa.Table], file: BinaryIO) -> None:
    first = next(tables)
    with pa.csv.CSVWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(_guarded(table))


def _guarded(table: pa.Table) -> pa.Table:
    """Return a table whose texts no spreadsheet takes for formulas."""
    for place, column in enumerate(table.schema):
        if pa.types.is_string(column.type):
            cells = [None if cell is None else guarded(cell) for cell in table[column.name].to_pylist()]
            table = table.set_column(place, column, pa.array(cells, column.type))
    return table


def _write_parquet(tables: Iterator[pa.Table], file: BinaryIO) -> None:
    first = next(tables)
    with pa.parquet.ParquetWriter(file, first.schema) as writer:
        waiting: list[pa.Table] = []
        for table in chain([first], tables):
            waiting.append(table)
            if sum(len(each) for each in waiting) >= ROW_GROUP:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))


def _write_json(tables: Iterator[pa.Table], file: BinaryIO) -> None:
    before = "[\n"
    for row in (row for table in tables for row in table.to_pylist()):
        file.write(f"{before} {json.dumps(row)}".encode())
        before = ",\n"
    file.write(b"[]\n" if before == "[\n" else b"\n]\n")


def check_table_path(path: Path, ending: str | None = None) -> None:
    """Raise InputError if a table cannot be written to a path."""
    if (ending or path.suffix) not in TABLE_FORMATS:
        raise InputError(f"{path}: unknown table format: use one of {', '.join(TABLE_FORMATS)}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist")


def read_label_file(
    path: Path, images: list[str], warn: Callable[[str], object] = lambda text: None, some: bool = False
) -> Shaped[np.ndarray, " N"]:
    """Read a CSV with columns image,label and return the label of each image, in their order.

    With `some`, images without a label get None.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; give a CSV with columns image,label")
    text = read_text(path)
    if text.note is not None:
        warn(text.note)
    table = text.table()
    if not {"image", "label"} <= set(table.columns):
        raise InputError(f"{path}: found columns {', '.join(table.columns) or 'none'}: needs image,label")
    known: dict[str, str] = {}
    for line, row in table.rows:
        if not row["label"] or known.setdefault(row["image"], row["label"]) != row["label"]:
            raise InputError(f"{path}: line {line}: give {row['image']!r} one label")
    missing = [image for image in images if image not in known]
    if missing and (not some or len(missing) == len(images)):
        todo = "give every image of the run a row"
        if known and len(missing) == len(images):
            todo = f"the file names {next(iter(known))!r}: name images as the run does, relative to its source"
        raise InputError(
            f"{path}: no label for {len(missing)} of {len(images)} images, the first {missing[0]!r}: {todo}"
        )
    if missing:
        labelled = len(images) - len(missing)
        warn(f"{path}: labels for {labelled:,} of {len(images):,} images: scores are computed on these")
        return np.array([known.get(image) for image in images], dtype=object)
    return np.array([known[image] for image in images])
