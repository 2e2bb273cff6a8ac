"""Blocks of a table that is not complete yet, in files of a folder next to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from propos.common.errors import refuse_to_overwrite
from propos.runs.atomic import sync_folder, write_atomically
from propos.runs.tables import ImageTable, check_table_path, write_parts

SKIPPED = b"skipped"  # the metadata of a block that lists images that could not be read
STATE = "state.json"
DIGEST_BYTES = 16


@dataclass(frozen=True)
class Block:
    """The rows of consecutive images; images that could not be read, with the reasons."""

    table: ImageTable
    skipped: list[tuple[str, str]]

    def to_bytes(self) -> bytes:
        """Return the block as an Arrow stream."""
        table = self.table.to_arrow().replace_schema_metadata({SKIPPED: json.dumps(self.skipped).encode()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())

    @classmethod
    def from_bytes(cls, content: bytes) -> Block:
        """Read a block from an Arrow stream."""
        table = pa.ipc.open_stream(content).read_all()
        columns: dict[str, Any] = {name: table[name].to_numpy() for name in table.column_names}
        del columns["id"]
        columns["images"] = columns.pop("image").tolist()
        if "name" in columns:
            columns["name"] = columns["name"].tolist()
        return cls(ImageTable(**columns), [tuple(each) for each in json.loads(table.schema.metadata[SKIPPED])])


class StoredBlocks:
    """Blocks of a table in a folder next to it, by number; a key tells which table they are of."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.folder = output.with_name(f".{output.name}.parts")

    def check_output(self) -> None:
        """Refuse an output that exists, unless the last command wrote it and was killed before it ended."""
        if self.rows_written() is None:
            refuse_to_overwrite(self.output)
        check_table_path(self.output)

    def prepare(self, key: str) -> None:
        """Make the folder, and remove blocks with another key."""
        if self._state().get("key") != key:
            refuse_to_overwrite(self.output)
            self.folder.mkdir(exist_ok=True)
            self._clear()
            self._write_state(key=key)

    def write_table(self, parts: Iterable[ImageTable]) -> int:
        """Write the table part by part and return its number of rows; it appears only when it is complete."""
        complete = self.folder / "table"
        rows = write_parts(parts, complete, self.output.suffix)
        # Before the table has its name: a command that is started again then knows it.
        self._write_state(**self._state(), rows=rows, file=_identity(complete))
        complete.replace(self.output)
        sync_folder(self.output.parent)
        return rows

    def rows_written(self) -> int | None:
        """Return the number of rows of the output if it was written from these blocks, else None."""
        state = self._state()
        with suppress(OSError):
            if "rows" in state and state.get("file") == _identity(self.output):
                return int(state["rows"])
        return None

    def remove(self) -> None:
        """Remove the folder; another machine may share it and remove it too."""
        self._clear()
        (self.folder / STATE).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            self.folder.rmdir()

    def __contains__(self, number: int) -> bool:
        return self._read(number) is not None

    def __getitem__(self, number: int) -> bytes:
        content = self._read(number)
        assert content is not None
        return content

    def __setitem__(self, number: int, content: bytes) -> None:
        write_atomically(self._file(number), _digest(content) + content)

    def _read(self, number: int) -> bytes | None:
        """Return a block; None if it is not stored, or damaged."""
        with suppress(FileNotFoundError):
            stored = self._file(number).read_bytes()
            if stored[:DIGEST_BYTES] == _digest(stored[DIGEST_BYTES:]):
                return stored[DIGEST_BYTES:]
        return None

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:08d}.block"

    def _state(self) -> dict[str, Any]:
        try:
            state = json.loads((self.folder / STATE).read_bytes())
        except (OSError, ValueError):  # none yet, or damaged
            return {}
        return state if isinstance(state, dict) else {}

    def _write_state(self, **state: object) -> None:
        write_atomically(self.folder / STATE, json.dumps(state).encode())

    def _clear(self) -> None:
        for pattern in ("*.block", "table", ".*.part"):  # also what a killed process left
            for file in self.folder.glob(pattern):
                file.unlink(missing_ok=True)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


def _identity(file: Path) -> list[int]:
    """Return what a file keeps when it is renamed, and loses when another replaces it."""
    about = file.stat()
    return [about.st_size, about.st_mtime_ns]
