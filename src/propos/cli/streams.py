"""Output streams that may be closed or limited to ASCII, and text that may be hostile."""

from __future__ import annotations

import codecs
import os
import re
import sys
from typing import TextIO

NAMES = 14  # width of the first column of a list
FALLBACK = "propos-ascii"  # the error handler for characters that a stream cannot encode
_IN_ASCII = {"×": "x", "…": "...", "–": "-", "−": "-", "←": "<-", "→": "->", "·": "*", "“": '"', "”": '"', "’": "'"}
# Control characters except line ends, C1 included, and marks of text direction.
_HOSTILE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return text that is safe for a terminal: control characters are escaped."""
    return _HOSTILE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def say(line: str, err: bool = False) -> None:
    """Print a line that may contain file names."""
    stream = sys.stderr if err else sys.stdout
    stream.write(printable(line) + "\n")
    stream.flush()


def say_named(name: str, text: str) -> None:
    """Print a named line of a list; on a terminal it is wrapped between words below itself."""
    lines = [text]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.text import Text

        console = Console(file=sys.stdout)
        wrapped = Text(printable(text)).wrap(console, max(console.width - NAMES - 1, NAMES))
        lines = [line.plain.rstrip() for line in wrapped]
    for place, line in enumerate(lines):
        say(f"{name if place == 0 else '':{NAMES}} {line}")


def make_streams_safe() -> None:
    """Make standard streams safe to write to: closed ones discard everything, ASCII ones get the nearest characters."""
    codecs.register_error(FALLBACK, _in_ascii)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _nothing(descriptor))
        elif descriptor and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=FALLBACK)
    for name in ("COLUMNS", "LINES"):
        if not re.fullmatch(r"[0-9]{1,4}", os.environ.get(name, "80")):
            del os.environ[name]  # larger than any terminal; rich uses the number as it is


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that cannot be encoded by similar ones, or by an escape."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(each, each.encode("ascii", "backslashreplace").decode()) for each in text), error.end


def _nothing(descriptor: int) -> TextIO:
    """Return a stream that discards everything, in place of a closed one.

    Otherwise the next opened file would take its number, and child processes would have no such stream.
    """
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    os.set_inheritable(descriptor, True)
    return open(descriptor, "w" if descriptor else "r", errors="replace", closefd=False)


def flush_streams() -> None:
    """Flush the streams; those whose reader has gone are redirected, so that exit is quiet."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class TolerantStream:
    """A stream whose reader may close it (head, a closed terminal): from then on it discards everything."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._gone = stream, False

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, unless the reader has gone."""
        if not self._gone:
            try:
                self._stream.write(text)
            except (OSError, ValueError):
                self._gone = True
        return len(text)

    def flush(self) -> None:
        """Flush, unless the reader has gone."""
        if not self._gone:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                self._gone = True
