"""Durations as text."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Format a duration: in minutes from a minute and a half, in hours from an hour and a half."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
