"""The images of a scan, as columns: a name and 58 bytes each, where objects took more than a thousand."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Int, Shaped

from propos.data.files.content import KINDS
from propos.data.files.entry import Entry
from propos.data.files.names import unescape_name

BLOCK = 4_096  # names that are turned into text at once
STAMP = np.dtype([("size", "<i8"), ("time", "<i8")])  # bytes, and the time of change in nanoseconds
FACTS = np.dtype(
    [
        ("digest", "V16"),  # of the first and last bytes; in an archive its checksum
        ("taken", "<i8"),  # when the photograph was taken, in milliseconds since 1970 by the camera's clock; 0: unknown
        ("camera", "<u4"),  # a checksum of the camera's name; 0: unknown
        ("width", "<u4"),  # as seen, after the camera's rotation
        ("height", "<u4"),
        ("kind", "u1"),  # a number in KINDS
        ("grey", "?"),
    ]
)

Where = slice | Int[np.ndarray, " M"] | Bool[np.ndarray, " N"]


class Names(Sequence[str]):
    """Names in one block of memory; each becomes a string when it is asked for."""

    def __init__(self, column: pa.Array) -> None:
        self.column = column

    def __len__(self) -> int:
        return len(self.column)

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), BLOCK):
            yield from self.column.slice(start, BLOCK).to_pylist()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Names):
            return bool(self.column.equals(other.column))
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # as of a list

    @overload
    def __getitem__(self, where: int) -> str: ...
    @overload
    def __getitem__(self, where: slice) -> Names: ...
    def __getitem__(self, where: int | slice) -> str | Names:
        """Return a name, or some of the names."""
        if isinstance(where, slice):
            return Names(_part(self.column, where))
        name: str = self.column[int(where)].as_py()
        return name


@dataclass(frozen=True, eq=False)
class Images(Sequence[Entry]):
    """Images in a stable order. One is an `Entry`, made when it is asked for; a part is `Images` again."""

    folder: Path  # that names start from; of an archive, its file
    archive: bool
    names: Names
    stamps: Shaped[np.ndarray, " N"]  # STAMP
    facts: Shaped[np.ndarray, " N"]  # FACTS
    labels: Shaped[np.ndarray, " N"] | None = None  # from a CSV

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, where: int) -> Entry: ...
    @overload
    def __getitem__(self, where: slice) -> Images: ...
    def __getitem__(self, where: int | slice) -> Entry | Images:
        """Return an image, or some of the images."""
        if isinstance(where, slice):
            return self.take(where)
        name, stamp, facts = self.names[where], self.stamps[where], self.facts[where]
        original = unescape_name(name)
        return Entry(
            name=name,
            path=self.folder if self.archive else self.folder / original,
            size=int(stamp["size"]),
            mtime_ns=int(stamp["time"]),
            member=original if self.archive else None,
            label=None if self.labels is None else self.labels[where],
            kind=KINDS[facts["kind"]],
            digest=facts["digest"].tobytes(),
            width=int(facts["width"]),
            height=int(facts["height"]),
        )

    def __iter__(self) -> Iterator[Entry]:
        return (self[position] for position in range(len(self)))

    def take(self, where: Where) -> Images:
        """Return the images in a range, at positions or of a mask."""
        column = _part(self.names.column, where)
        labels = None if self.labels is None else self.labels[where]
        return Images(self.folder, self.archive, Names(column), self.stamps[where], self.facts[where], labels)

    @cached_property
    def identity(self) -> str:
        """A hash of every image's name, size, time of change and digest."""
        digest = hashlib.blake2b(digest_size=16)
        for start in range(0, len(self), BLOCK):
            part = self[start : start + BLOCK]
            digest.update("\n".join(part.names).encode() + b"\n\n")
            digest.update(part.stamps.tobytes() + part.facts["digest"].tobytes())
        return digest.hexdigest()

    def places(self, names: Sequence[str]) -> Int[np.ndarray, " M"]:
        """Return the positions of images by name; −1: there is none."""
        return places_of(names.column if isinstance(names, Names) else column_of(names), self.names.column)

    @property
    def single_files(self) -> bool:
        """Whether every image is a file below the folder, found by its name."""
        import pyarrow.compute as pc

        return not (self.archive or pc.any(pc.starts_with(self.names.column, "/")).as_py())


def column_of(names: Sequence[str]) -> pa.Array:
    """Return names as one column."""
    return joined([pa.array(names, pa.string())])


def joined(parts: Sequence[pa.Array]) -> pa.Array:
    """Join columns of names; a column of more than 2 GiB counts its bytes in 64 bits."""
    wide = sum(part.nbytes for part in parts) >= 2**31
    kind = pa.large_string() if wide else pa.string()
    return pa.concat_arrays([pa.array([], kind), *(part.cast(kind) for part in parts)])


def places_of(wanted: pa.Array, names: pa.Array) -> Int[np.ndarray, " M"]:
    """Return where each wanted name is among names; −1: nowhere."""
    import pyarrow.compute as pc

    if names.equals(wanted):
        return np.arange(len(names))
    found = pc.index_in(wanted, value_set=names.cast(wanted.type)).fill_null(-1)
    return np.asarray(found.to_numpy()).astype(np.int64)


def _part(column: pa.Array, where: Where) -> Any:
    if isinstance(where, slice):
        first, end, step = where.indices(len(column))
        if step == 1:
            return column.slice(first, max(0, end - first))
        where = np.arange(first, end, step)
    return column.filter(pa.array(where)) if where.dtype == bool else column.take(pa.array(where))
