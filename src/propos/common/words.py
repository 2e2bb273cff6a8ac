"""Numbers of things as people write them."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """Write how many there are of a thing whose plural ends in s."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
