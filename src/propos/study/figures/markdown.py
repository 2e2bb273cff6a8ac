"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [_line(head), "|" + "---|" * len(head)]
    return lines + [_line(row) for row in rows]


def _line(words: Sequence[str]) -> str:
    return "| " + " | ".join(word.replace("|", "\\|").replace("\n", " ") for word in words) + " |"
