"""An index of the files a person names: status, headers and digests of one scan, kept for the next.

Every command lists all files again and asks the file system for each one's size, time of change, inode and change time.
What is unchanged in all four is not opened; the rest is. Folder times are not used, because a file that is overwritten
does not change them. The change time (ctime) cannot be set back, so neither a tool that restores a file's time nor one
that keeps its size goes unnoticed. Where it means less, the first and last bytes of the file are compared too: on file
systems that do not keep it (`virtual_fs.TIMED`), and for files changed less than two seconds before they were read,
whose next change may carry the same time.

The file is Parquet with checksums, replaced atomically: several commands may read and write it at the same time.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL
import pyarrow as pa
import pyarrow.parquet
from jaxtyping import Bool, Int, Shaped

from propos.common.progress import ShowTask, show_nothing
from propos.data.cache.builder import META, mark
from propos.data.cache.store import cache_folder, mark_used, no_cache
from propos.data.files.content import reads_heic
from propos.data.files.entry import reason_for
from propos.data.files.images import FACTS, joined, places_of
from propos.data.files.listing import STATUS, Listed
from propos.data.files.names import escape_name
from propos.data.files.scan import Looked, Scan, What, listing, look_at, scanned
from propos.runs.atomic import write_atomically

INDEX = "index.parquet"
FORMAT = 1
FEWEST = 256  # files; fewer are read before a person notices
RECENT = 2_000_000_000  # nanoseconds: the coarsest step of a file system's times
ROWS = 65_536  # of a row group


@dataclass(frozen=True)
class _Index:
    """The content of an index."""

    names: pa.Array
    status: Shaped[np.ndarray, " N"]  # STATUS
    facts: Shaped[np.ndarray, " N"]  # FACTS
    reasons: pa.Array  # why a file is no image; null: it is one
    read: int  # when the scan began, in nanoseconds since 1970


def indexed_scan(what: What, show_task: ShowTask = show_nothing) -> Scan:
    """Find the images a person names, as `scan` does, but open only files that changed since the last time."""
    began = time.time_ns()
    listed = listing(what, show_task)
    looked, notes = Looked.nothing(listed), []
    if len(listed) < FEWEST or no_cache() is not None:
        look_at(listed, looked, np.arange(len(listed)), show_task)
        return scanned(listed, looked)
    folder = cache_folder() / _key(what if isinstance(what, str | Path) else listed)
    index = None
    if folder.exists():
        try:
            index = _read(folder / INDEX)
        except Exception:  # damaged Parquet raises many kinds of errors
            notes.append(f"{folder / INDEX}: the index of the files was damaged: all files were read again")
    unsure = np.arange(len(listed)) if index is None else _recall(index, listed, looked)
    look_at(listed, looked, unsure, show_task)
    if len(unsure) or index is None or len(index.names) != len(listed):
        try:
            _write(folder, listed, looked, began)
        except OSError as error:
            notes.append(f"{folder}: the index of the files cannot be written: {reason_for(error)}")
    else:
        mark_used(folder)
    return scanned(listed, looked, notes)


@dataclass(frozen=True)
class IndexFiles:
    """The stored index of a folder, list or archive, for other machines that see the same files."""

    what: str | Path

    @property
    def folder(self) -> Path:
        """The folder of the index in the cache."""
        return cache_folder() / _key(self.what)

    def exist(self) -> bool:
        """Return whether there is an index."""
        return no_cache() is None and (self.folder / INDEX).exists() and (self.folder / META).exists()

    def read(self) -> tuple[bytes, bytes]:
        """Return the index and its description."""
        return (self.folder / INDEX).read_bytes(), (self.folder / META).read_bytes()

    def write(self, index: bytes, description: bytes) -> None:
        """Store an index that another machine made; files that differ here are opened, as if they had changed."""
        with suppress(OSError):  # without it, all files are opened
            self.folder.mkdir(parents=True, exist_ok=True)
            mark(self.folder)
            write_atomically(self.folder / INDEX, index)
            write_atomically(self.folder / META, description)


def _key(what: str | Path | Listed) -> str:
    """Return the name of the index of a folder, list or archive, by its path; of paths in memory, by all of them."""
    digest = hashlib.blake2b(f"propos index {FORMAT}\n".encode())
    if isinstance(what, Listed):
        digest.update(
            "\n".join([str(what.folder.absolute()), *what.names.to_pylist()]).encode(errors="surrogateescape")
        )
    else:
        digest.update(str(Path(what).absolute()).encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]


def _made_with() -> dict[str, object]:
    """Return what facts depend on besides the files."""
    return {"format": FORMAT, "pillow": PIL.__version__, "heic": reads_heic()}


def _recall(index: _Index, listed: Listed, looked: Looked) -> Int[np.ndarray, " M"]:
    """Fill in the facts of unchanged files, and return the positions of those that have to be opened."""
    if index.names.equals(listed.names):
        place, status, facts = np.arange(len(listed)), index.status, index.facts
    else:
        place = places_of(listed.names, index.names)
        status, facts = index.status[place], index.facts[place]
    same = (place >= 0) & (status["size"] == listed.status["size"]) & (status["time"] == listed.status["time"])
    # These facts are known; where a file is opened nevertheless, they stay if its digest is still the same.
    np.copyto(looked.facts, facts, where=same)
    sure = same & (status["changed"] == listed.status["changed"]) & (status["inode"] == listed.status["inode"])
    sure &= (status["changed"] < index.read - RECENT) & listed.timed
    known: Bool[np.ndarray, " N"] = looked.facts["kind"] > 0
    if index.reasons.null_count < len(index.reasons):
        reasons = index.reasons.take(pa.array(np.where(sure & ~known, place, 0))).to_pylist()
        for position in np.flatnonzero(sure & ~known).tolist():
            if reasons[position]:
                looked.reasons[position] = reasons[position]
                known[position] = True
    return np.flatnonzero(~(sure & known))


def _write(folder: Path, listed: Listed, looked: Looked, began: int) -> None:
    """Write the index of a scan that began at this time."""
    folder.mkdir(parents=True, exist_ok=True)
    mark(folder)
    kept = np.ones(len(listed), dtype=bool)
    kept[list(looked.passing)] = False
    schema = _schema().with_metadata({"propos": json.dumps({**_made_with(), "read": began})})

    def write(file: object) -> None:
        with pa.parquet.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer:
            for start in range(0, len(listed), ROWS):
                part = slice(start, start + ROWS)
                reasons = [looked.reasons.get(at) for at in range(*part.indices(len(listed)))]
                columns = [
                    listed.names.slice(start, ROWS).cast(pa.string()),
                    *_columns(listed.status[part]),
                    *_columns(looked.facts[part]),
                ]
                rows = pa.table([*columns, pa.array(reasons, pa.string())], schema=schema)
                writer.write_table(rows.filter(pa.array(kept[part])))

    write_atomically(folder / INDEX, write)
    source = f"index of {escape_name(str(listed.root.absolute()))}"
    meta = {"source": source, "images": int((looked.facts["kind"] > 0).sum())}
    write_atomically(folder / META, json.dumps(meta).encode())


def _read(path: Path) -> _Index | None:
    """Read an index; None if it was made by another version, an exception if it is damaged."""
    with path.open("rb") as file, pa.parquet.ParquetFile(file, page_checksum_verification=True) as index:
        made = json.loads(index.schema_arrow.metadata[b"propos"])
        read = made.pop("read")
        if made != _made_with():
            return None
        if index.schema_arrow != _schema() or type(read) is not int:
            raise ValueError("other columns")
        status, facts = (np.empty(index.metadata.num_rows, dtype) for dtype in (STATUS, FACTS))
        texts: dict[str, list[pa.Array]] = {"name": [], "reason": []}
        done = 0
        for batch in index.iter_batches(ROWS):  # the whole table at once would take three times the memory
            for rows in (status[done : done + len(batch)], facts[done : done + len(batch)]):
                for name in rows.dtype.names or ():
                    rows[name] = _values(batch[name], rows.dtype[name])
            for name, parts in texts.items():
                parts.append(batch[name])
            done += len(batch)
    if done != len(status):
        raise ValueError("fewer rows than announced")
    return _Index(joined(texts["name"]), status, facts, joined(texts["reason"]), read)


def _schema() -> pa.Schema:
    columns = [(name, _arrow(dtype[name])) for dtype in (STATUS, FACTS) for name in dtype.names or ()]
    return pa.schema([("name", pa.string()), *columns, ("reason", pa.string())])


def _arrow(dtype: np.dtype[np.generic]) -> pa.DataType:
    return pa.binary(dtype.itemsize) if dtype.kind == "V" else pa.from_numpy_dtype(dtype)


def _columns(rows: Shaped[np.ndarray, " N"]) -> Sequence[pa.Array]:
    return [_column(np.ascontiguousarray(rows[name])) for name in rows.dtype.names or ()]


def _column(values: Shaped[np.ndarray, " N"]) -> pa.Array:
    if values.dtype.kind != "V":
        return pa.array(values)
    kind = pa.binary(values.dtype.itemsize)
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(values), [None, pa.py_buffer(values.tobytes())])


def _values(column: pa.Array, dtype: np.dtype[np.generic]) -> Shaped[np.ndarray, " N"]:
    if dtype.kind != "V":
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if column.null_count:
        raise ValueError("a digest is missing")
    first = column.offset * dtype.itemsize
    return np.frombuffer(column.buffers()[1], dtype, len(column), first)
