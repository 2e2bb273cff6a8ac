"""What the commands write to: streams that may be closed, go away or know few letters, and text that may be hostile."""

from __future__ import annotations

import codecs
import os
import re
import sys
from typing import TextIO

NAMES = 14  # columns for the names of a list
FALLBACK = "propos-ascii"  # the handler of letters that a stream cannot encode
_IN_ASCII = {"×": "x", "…": "...", "–": "-", "−": "-", "←": "<-", "→": "->", "·": "*", "“": '"', "”": '"', "’": "'"}
# Control characters but for line ends, C1's included, and what turns the direction of writing.
_HOSTILE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return text that can do nothing to a terminal: what would steer it is written as an escape."""
    return _HOSTILE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def say(line: str, err: bool = False) -> None:
    """Print a line that may hold names."""
    stream = sys.stderr if err else sys.stdout
    stream.write(printable(line) + "\n")
    stream.flush()


def say_named(name: str, text: str) -> None:
    """Print a line of a list; on a terminal what is too long for it goes on below itself, broken between words."""
    lines = [text]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.text import Text

        console = Console(file=sys.stdout)
        wrapped = Text(printable(text)).wrap(console, max(console.width - NAMES - 1, NAMES))
        lines = [line.plain.rstrip() for line in wrapped]
    for place, line in enumerate(lines):
        say(f"{name if place == 0 else '':{NAMES}} {line}")


def mend_streams() -> None:
    """Have streams that take whatever is written: closed ones nothing, those of ASCII alone what comes near."""
    codecs.register_error(FALLBACK, _in_ascii)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _nothing(descriptor))
        elif descriptor and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=FALLBACK)
    for name in ("COLUMNS", "LINES"):
        if not re.fullmatch(r"[0-9]{1,4}", os.environ.get(name, "80")):
            del os.environ[name]  # no terminal is so large, and what draws on it takes the number as it is


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace what cannot be encoded by what looks like it, or by its escape."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(each, each.encode("ascii", "backslashreplace").decode()) for each in text), error.end


def _nothing(descriptor: int) -> TextIO:
    """Return a stream that takes everything, in the place of a closed one.

    Else the next file that is opened would take its number, and the processes that are started would be without.
    """
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    os.set_inheritable(descriptor, True)
    return open(descriptor, "w" if descriptor else "r", errors="replace", closefd=False)


def let_go() -> None:
    """Send what was written; streams whose reader has gone are pointed elsewhere, so that exit is quiet."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Enduring:
    """A stream whose reader may go away (head, a closed terminal): from then on it takes everything."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._gone = stream, False

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write what can still be written."""
        if not self._gone:
            try:
                self._stream.write(text)
            except (OSError, ValueError):
                self._gone = True
        return len(text)

    def flush(self) -> None:
        """Send it to the reader, if there still is one."""
        if not self._gone:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                self._gone = True
