"""`propos run`: train on a source."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli.prechecks import check_source, is_only_process

if TYPE_CHECKING:
    from propos.data import Source
    from propos.runner import Request
    from propos.runs import Run


def run(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="A folder of images, a .npy or .npz file, a list (.txt, .csv), a .zip, digits, "
            "or a data set by name (see `propos datasets`).",
        ),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            "-k",
            metavar="K | A..B",
            help="Number of clusters, or a range to choose from (default: the number of labels; "
            "without labels, a number is suggested).",
        ),
    ] = None,
    method: Annotated[str | None, typer.Option(help="Method (see `propos methods`).")] = None,
    recipe: Annotated[str | None, typer.Option(help="Recipe (see `propos recipes`).")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Run folder (default: a new one in runs/).")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Number of epochs; warm-up and *_start settings scale with it.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--time", metavar="30m", help="Approximate training time (45s, 30m, 2h); sets the number of epochs."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; repeatable.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings from a YAML file, such as a run's config.yaml.")] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="folders: score against class folders (also inside train, val, test); never used for training."
        ),
    ] = None,
    earlier: Annotated[
        Path | None,
        typer.Option("--from", metavar="RUN", help="Continue from a finished run, keeping its cluster ids."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="START",
            help="scratch, pretrained[:NAME], or a network of the hub: dinov2-s, clip-b32, hub:OWNER/NAME, hub:FOLDER "
            "(default: pretrained for photographs, if installed).",
        ),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A pretrained network's weights: .safetensors or a state dict.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of data sets (default: PROPOS_DATA).")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an unfinished run.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings and errors.")] = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write the HTML page at the end.")] = True,
) -> None:
    """Learn clusters from images and write them to a run folder."""
    check_source(source)
    from propos.config import parse_assignments, parse_clusters

    if clusters is not None and is_only_process():
        parse_clusters(clusters)
    given = parse_assignments(settings or [])
    from propos.cli.threads import set_wait_policy

    threads = set_wait_policy()
    from propos.runner import Length, Origin, Output, Request

    request = Request(
        source=source,
        clusters=clusters,
        method=method,
        recipe=recipe,
        output=Output(out=out, command=shlex.join(["propos", *sys.argv[1:]])),
        seed=seed,
        length=Length(epochs=epochs, time=budget),
        settings=given,
        config=config,
        labels=labels,
        origin=Origin(earlier=earlier, start=start, weights=weights),
        data=data,
    )
    run_on_terminal(request, resume, device, quiet, report, threads)


def run_on_terminal(
    request: Request, resume: bool, device: str, quiet: bool, report: bool, threads: str | None = None
) -> Run | None:
    """Run a request, show it on the terminal, and stop after a step on Ctrl-C."""
    from propos.cli.display import Terminal
    from propos.cli.stopping import stop_on_signals
    from propos.distributed import join_process_group, rank
    from propos.review.naming import propose_names_or_warn
    from propos.review.report import write_report_or_warn
    from propos.runner import run_request

    # Only rank 0 prints.
    with join_process_group(), Terminal(quiet or rank() > 0, mute=rank() > 0) as terminal:

        def stopping() -> AbstractContextManager[Callable[[], bool]]:
            if threads is not None:
                terminal.note(threads)  # when training starts: after the reasons of the plan
            return stop_on_signals(terminal)

        def present(run: Run, images: Source) -> None:
            propose_names_or_warn(run, images, terminal)
            write_report_or_warn(run, images, terminal)

        return run_request(
            request,
            resume,
            device,
            terminal,
            stopping=stopping,
            page=present if report else None,
        )
