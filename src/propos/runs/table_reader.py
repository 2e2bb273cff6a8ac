"""Reading clusters.parquet: its columns, types and rows are checked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from jaxtyping import Float, Int, Shaped

from propos.common.errors import InputError, shown
from propos.runs.tables import ImageTable

Kind = Callable[[pa.DataType], bool]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_label(kind: pa.DataType) -> bool:
    return bool(_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


COLUMNS: dict[str, tuple[Kind, str]] = {
    "id": (pa.types.is_integer, "whole numbers"),
    "image": (_is_text, "text"),
    "cluster": (pa.types.is_integer, "whole numbers"),
    "confidence": (pa.types.is_floating, "numbers"),
    "distance": (pa.types.is_floating, "numbers"),
}


def check_table(path: Path) -> int:
    """Check a table's columns and types by its footer alone, and return its number of rows."""
    try:
        footer = pa.parquet.read_metadata(path)
        fields = list(footer.schema.to_arrow_schema())
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None
    kinds = {field.name: field.type for field in fields}
    if len(kinds) < len(fields):
        raise InputError(f"{path}: duplicate column name")
    for name, (fits, words) in COLUMNS.items():
        if name not in kinds:
            raise InputError(f"{path}: column {name} is missing")
        if not fits(kinds[name]):
            raise InputError(f"{path}: its column {name} holds {shown(str(kinds[name]), quoted=False)}, not {words}")
    if "label" in kinds and not _is_label(kinds["label"]):
        raise InputError(f"{path}: its column label holds {shown(str(kinds['label']), quoted=False)}, not labels")
    if footer.num_rows < 1:
        raise InputError(f"{path}: contains no images")
    return int(footer.num_rows)


def read_table(path: Path, ids: Int[np.ndarray, " K"]) -> ImageTable:
    """Read a table whose clusters are among the ids."""
    rows = check_table(path)
    try:
        table = pa.parquet.ParquetFile(path).read()
        columns = {name: table[name].combine_chunks() for name in (*COLUMNS, "label") if name in table.column_names}
        for column in columns.values():
            column.validate(full=True)
        images = columns["image"].to_pylist()
        plain = {name: column.to_numpy(zero_copy_only=False) for name, column in columns.items() if name != "image"}
    except (OSError, ValueError, MemoryError, NotImplementedError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None
    for name, column in columns.items():
        if column.null_count:
            raise InputError(f"{path}: its column {name} has {column.null_count:,} rows without a value")
    if len(table) != rows or not np.array_equal(plain["id"], np.arange(rows)):
        raise InputError(f"{path}: its column id does not count the rows from 0")
    _check_values(path, images, plain["cluster"], ids, plain)
    return ImageTable(
        images=images,
        cluster=plain["cluster"].astype(np.int32),
        confidence=plain["confidence"].astype(np.float32),
        distance=plain["distance"].astype(np.float32),
        label=plain.get("label"),
    )


def _check_values(
    path: Path,
    images: list[str],
    cluster: Int[np.ndarray, " N"],
    ids: Int[np.ndarray, " K"],
    columns: dict[str, Shaped[np.ndarray, " N"]],
) -> None:
    strange = np.flatnonzero(~np.isin(cluster, ids))
    if len(strange):
        row = strange[0]
        raise InputError(f"{path}: row {row} is in cluster {cluster[row]}, which the run does not have")
    for name in ("confidence", "distance", "label"):
        values: Float[np.ndarray, " N"] | None = columns.get(name)
        if values is not None and np.issubdtype(values.dtype, np.floating) and not np.isfinite(values).all():
            raise InputError(f"{path}: its column {name} holds NaN or infinity")
    broken = next((row for row, name in enumerate(images) if "\n" in name), None)
    if broken is not None:
        raise InputError(f"{path}: the image of row {broken} has a line break in its name")


def _unreadable(path: Path, error: BaseException) -> InputError:
    if isinstance(error, OSError) and error.errno is not None:
        return InputError(f"{path}: cannot be read: {os.strerror(error.errno)}")
    return InputError(f"{path}: cannot be read: {shown(' '.join(str(error).split()), quoted=False)}")
