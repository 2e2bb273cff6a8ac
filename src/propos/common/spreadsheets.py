"""CSV tables as spreadsheets read and write them: encodings, and cells that look like formulas."""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from propos.common.errors import InputError

_BYTES = bytes(range(256))
# Windows-1252 leaves five bytes without a letter; as they stand every byte has one, and every text its bytes back.
_WINDOWS = "".join(_BYTES[at : at + 1].decode("cp1252", errors="ignore") or chr(at) for at in range(256))
_FORMULA = re.compile("'*[=+\\-@\t\r]")
_GUARDED = re.compile("'+[=+\\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Text:
    """The text of a file; `guessed` says that its encoding is a guess."""

    path: Path
    text: str
    guessed: bool

    @property
    def note(self) -> str | None:
        """A note about the encoding."""
        if not self.guessed:
            return None
        return f"{self.path}: is not UTF-8: read as Windows-1252, as Excel writes; save it as UTF-8 to be sure"

    def as_written(self, part: str) -> str:
        """Return a part of the text as the file name with the same bytes."""
        if not self.guessed:
            return part
        return os.fsdecode(codecs.charmap_encode(part, "strict", codecs.charmap_build(_WINDOWS))[0])

    def table(self) -> Table:
        """Parse it as CSV and remove guards."""
        reader = csv.reader(io.StringIO(self.text, newline=""))
        try:
            columns = [name.strip().lower() for name in next(reader, [])]
            cells = ((reader.line_num, [unguarded(cell) for cell in row]) for row in reader if row)
            rows = [(line, dict(zip_longest(columns, row[: len(columns)], fillvalue=""))) for line, row in cells]
        except csv.Error as error:
            raise InputError(f"{self.path}: line {reader.line_num} cannot be read as CSV: {error}") from None
        return Table(columns, rows)


@dataclass(frozen=True)
class Table:
    """The columns of a CSV, in small letters, and its rows with the line each ends in; missing cells are empty."""

    columns: list[str]
    rows: list[tuple[int, dict[str, str]]]


def read_text(path: Path) -> Text:
    """Read a text file."""
    content = path.read_bytes()
    if not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Text(path, *decoded(content))
    try:
        return Text(path, content.decode("utf-16"), guessed=False)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: cannot be read as UTF-16, which its first bytes announce: {error.reason}") from None


def decoded(content: bytes) -> tuple[str, bool]:
    """Decode bytes as UTF-8, else as Windows-1252; return whether that was a guess."""
    try:
        return content.decode("utf-8-sig"), False
    except UnicodeDecodeError:
        return codecs.charmap_decode(content, "strict", _WINDOWS)[0], True


def guarded(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: a mark is put in front, except for numbers."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unguarded(cell: str) -> str:
    """Undo `guarded`."""
    return cell[1:] if _GUARDED.match(cell) else cell
