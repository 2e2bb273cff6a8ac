"""`propos cache`: the decoded images kept for the next run."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from propos.cli.streams import say

cache = typer.Typer(help="List or clean the decoded images kept for the next run.", rich_markup_mode=None)


@cache.command("list")
def list_cached() -> None:
    """List the cached images."""
    from propos.data import cache_folder, list_caches

    kept = list_caches()
    for each in kept:
        used = format_date(each.last_used)
        say(f"{each.key}  {each.images:>9,} images  {each.bytes / 1e6:>8,.1f} MB  used {used}  {each.source}")
    total = sum(each.bytes for each in kept)
    say(f"{len(kept)} kept in {cache_folder()}, {total / 1e6:,.1f} MB in all")


@cache.command("clean")
def clean(
    days: Annotated[float, typer.Option(help="Delete only what was not used for this many days.", min=0.0)] = 0.0,
) -> None:
    """Delete cached images; the next run decodes its images again."""
    from propos.data import clean_caches

    deleted = clean_caches(days or None)
    say(f"{len(deleted)} deleted, {sum(each.bytes for each in deleted) / 1e6:,.1f} MB freed")


def format_date(seconds: float) -> str:
    """Return a date, from seconds since 1970."""
    try:
        return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):  # a file's time may be out of range
        return "at an unknown time"
