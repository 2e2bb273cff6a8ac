"""Counted nouns."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """Return a number with a noun, in the plural with s."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
