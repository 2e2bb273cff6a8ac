"""`propos inspect`: a look before training."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli.prechecks import refuse_absent
from propos.cli.streams import say_named as line
from propos.common.errors import refuse_to_overwrite

if TYPE_CHECKING:
    from propos.runner.inspect import Overview

SHOWN = 5


def inspect(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A folder of images, or whatever else `propos run` takes.")
    ],
    clusters: Annotated[int | None, typer.Option("-k", help="How many clusters the run would find.")] = None,
    views: Annotated[Path | None, typer.Option(help="Write a picture of the views to this new PNG file.")] = None,
    data: Annotated[Path | None, typer.Option(help="The folder of data sets; else PROPOS_DATA.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Look at images before training: what is there, what would be trained, and how long it would take."""
    refuse_absent(source)
    if views is not None:
        refuse_to_overwrite(views, "--views")
    from propos.cli.display import Terminal
    from propos.runner import Request, SilentReporter, plan
    from propos.runner.inspect import ESTIMATE_CLUSTERS, draw_views_of, look

    request = Request(source=source, clusters=clusters, data=data)
    with (
        Terminal(quiet=as_json) as terminal,
        plan(request, device, SilentReporter(terminal.working), ESTIMATE_CLUSTERS) as planned,
    ):
        overview = look(planned)
        if views is not None:
            draw_views_of(planned.source, planned.config, views)
    if as_json:
        typer.echo(json.dumps(asdict(overview)))
    else:
        _print(overview, views)


def _print(overview: Overview, views: Path | None) -> None:
    from propos.common.durations import duration
    from propos.common.words import counted

    line("images", f"{overview.images:,} {'greyscale' if overview.channels == 1 else 'colour'}")
    if overview.formats:
        line("formats", ", ".join(f"{count:,} {kind}" for kind, count in overview.formats.items()))
    common = list(overview.sizes.items())[:SHOWN]
    line("sizes", ", ".join(f"{count:,} of {size}" for size, count in common) + _more(len(overview.sizes)))
    if overview.folders is not None:
        line("folders", f"{overview.folders} (for --labels folders)")
    for note in overview.notes:
        line("note", note)
    for name, reason in list(overview.skipped.items())[:SHOWN]:
        line("skipped", f"{name}: {reason}")
    if len(overview.skipped) > SHOWN:
        line("", f"… {len(overview.skipped):,} skipped in all; --json lists them")
    for what, names in (("tiny", overview.tiny), ("odd shape", overview.odd)):
        if names:
            line(what, ", ".join(names[:SHOWN]) + _more(len(names)))
    for group in overview.duplicates[:SHOWN]:
        line("same bytes", " = ".join(group[:SHOWN]) + _more(len(group)))
    if len(overview.duplicates) > SHOWN:
        line("", f"… {len(overview.duplicates):,} such groups in all; --json lists them")
    line("recipe", overview.recipe + ("" if overview.epochs is None else f", {counted(overview.epochs, 'epoch')}"))
    if overview.views is not None:
        line("views", overview.views)
    line("it takes", f"about {duration(overview.seconds)}")
    if overview.measured_elsewhere is not None:
        found = overview.measured_elsewhere
        line("elsewhere", f"measured on other images, no forecast for these: {found} (docs/results.md)")
    if views is not None:
        line("drawn", str(views))


def _more(count: int) -> str:
    return f" … {count:,} in all" if count > SHOWN else ""
