"""`propos inspect`: look at images before training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli.prechecks import check_source
from propos.cli.streams import say_named as line
from propos.common.errors import refuse_to_overwrite

if TYPE_CHECKING:
    from propos.runner.inspect.overview import Files, Overview, Planned

SHOWN = 5


def inspect(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Images, as for `propos run`.")],
    clusters: Annotated[int | None, typer.Option("-k", help="Number of clusters.")] = None,
    views: Annotated[
        Path | None, typer.Option(help="Write a picture of random views to this PNG file; must not exist.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of data sets (default: PROPOS_DATA).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Look at images before training: what they are, what would be trained, and how long it would take."""
    check_source(source)
    if views is not None:
        refuse_to_overwrite(views, "--views")
    from propos.cli.display import Terminal
    from propos.runner import Request, SilentReporter, plan
    from propos.runner.inspect import ESTIMATE_CLUSTERS, draw_views_of, overview

    request = Request(source=source, clusters=clusters, data=data)
    with (
        Terminal(quiet=as_json) as terminal,
        plan(request, device, SilentReporter(terminal.show_task), ESTIMATE_CLUSTERS) as decision,
    ):
        found = overview(decision)
        if views is not None:
            draw_views_of(decision.source, decision.config, views)
    if as_json:
        typer.echo(json.dumps(found.plain()))
        return
    _print_images(found)
    _print_files(found.files)
    _print_planned(found.planned)
    if views is not None:
        line("views drawn", str(views))


def _print_images(found: Overview) -> None:
    line("images", f"{found.images:,} {'greyscale' if found.channels == 1 else 'colour'}")
    if found.files.formats:
        line("formats", ", ".join(f"{count:,} {kind}" for kind, count in found.files.formats.items()))
    sizes = list(found.files.sizes.items())
    line("sizes", ", ".join(f"{count:,} of {size}" for size, count in sizes[:SHOWN]) + _more(len(sizes)))
    if found.folders is not None:
        line("folders", f"{found.folders} (for --labels folders)")
    for note in found.notes:
        line("note", note)


def _print_files(files: Files) -> None:
    for name, reason in list(files.skipped.items())[:SHOWN]:
        line("skipped", f"{name}: {reason}")
    if len(files.skipped) > SHOWN:
        line("", f"… {len(files.skipped):,} skipped in all; --json lists them")
    for what, names in (("tiny", files.tiny), ("odd shape", files.odd)):
        if names:
            line(what, ", ".join(names[:SHOWN]) + _more(len(names)))
    for group in files.duplicates[:SHOWN]:
        line("same bytes", " = ".join(group[:SHOWN]) + _more(len(group)))
    if len(files.duplicates) > SHOWN:
        line("", f"… {len(files.duplicates):,} such groups in all; --json lists them")


def _print_planned(planned: Planned) -> None:
    from propos.common.durations import duration
    from propos.common.plurals import counted

    epochs = "" if planned.epochs is None else f", {counted(planned.epochs, 'epoch')}"
    line("recipe", planned.recipe + epochs)
    for about, reason in sorted(planned.reasons.items(), key=lambda pair: pair[0] != "recipe"):
        if about == "recipe":
            line("", reason.removeprefix(f"{planned.recipe}, "))
        else:
            line(about, reason)
    line("duration", f"about {duration(planned.seconds)}")
    if planned.measured_elsewhere is not None:
        found = planned.measured_elsewhere
        line("elsewhere", f"measured on other images, not a prediction for these: {found} (docs/results.md)")


def _more(count: int) -> str:
    return f" … {count:,} in all" if count > SHOWN else ""
