"""Images that were taken into a finished run after training: a log and their embeddings, both only appended to.

Embeddings are appended first, then the lines of the log, so each complete line has its embedding. What a killed process
left behind its last complete line is removed when the log is opened again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from propos.common.errors import InputError
from propos.runs.edits import ClusterId

FOLDER = "arrivals"  # in the folder of the run that takes them in
TAKEN, VECTORS = "taken.jsonl", "taken.f32"
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Arrival(BaseModel):
    """An image that was taken in: its file, and what the run's model says of it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    v: Literal[1] = 1
    image: str
    file: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]  # a hash of the file's content
    size: int
    time: int  # of the file's last change
    cluster: ClusterId
    confidence: Finite
    distance: Finite
    rejected: bool = False  # it is far from all clusters


@dataclass
class Arrivals:
    """The log of a folder, opened by the one process that appends to it."""

    folder: Path
    width: int  # of an embedding
    lines: list[Arrival]

    @classmethod
    def open(cls, folder: Path, width: int) -> Arrivals:
        """Read the log; remove an incomplete last line, and embeddings without a line."""
        path = folder / TAKEN
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        lines = [_parse(line, f"{path}: line {number}") for number, line in enumerate(whole.splitlines(), start=1)]
        vectors, size = folder / VECTORS, 4 * width * len(lines)
        there = vectors.stat().st_size if vectors.exists() else 0
        if there < size:
            raise InputError(f"{vectors}: holds fewer embeddings than {path} has lines: restore it, or remove {folder}")
        for file, length in ((path, len(whole)), (vectors, size)):
            if file.exists() and file.stat().st_size > length:
                os.truncate(file, length)
        return cls(folder, width, lines)

    def append(self, fresh: list[Arrival], embeddings: Float[np.ndarray, "n D"]) -> None:
        """Add images; they are on the disk when this returns."""
        assert embeddings.shape == (len(fresh), self.width)
        _append(self.folder / VECTORS, np.ascontiguousarray(embeddings, "<f4").tobytes())
        _append(self.folder / TAKEN, b"".join(each.model_dump_json().encode() + b"\n" for each in fresh))
        self.lines += fresh

    def embeddings(self) -> Float[np.ndarray, "N D"]:
        """Read all embeddings."""
        read = np.fromfile(self.folder / VECTORS, "<f4") if self.lines else np.empty(0, np.float32)
        return read.reshape(len(self.lines), self.width)


def _parse(line: bytes, where: str) -> Arrival:
    try:
        return Arrival.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise InputError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
