"""`propos run`: train on a source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A folder of images, a .npy or .npz file, a list (.txt, .csv), a .zip, digits, "
            "or a data set by name (see `propos datasets`)."
        ),
    ] = None,
    clusters: Annotated[
        str | None,
        typer.Option(
            "-k",
            metavar="K | A..B",
            help="How many clusters to find, or a range to choose from; without it as many as there are labels, "
            "and without labels a number is suggested.",
        ),
    ] = None,
    method: Annotated[str | None, typer.Option(help="The method (see `propos methods`).")] = None,
    recipe: Annotated[str | None, typer.Option(help="A recipe by name (see `propos recipes`).")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder; by default a new one in runs/.")] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of everything random.")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="How long to train; warm-up and start of scattering scale along.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--time", metavar="30m", help="Train about so long: 45s, 30m or 2h; sets the epochs.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; repeatable.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings from a YAML file, as a run folder holds.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="folders: score against the folders the images are in; never used to train.")
    ] = None,
    earlier: Annotated[
        Path | None, typer.Option("--from", metavar="RUN", help="Go on from a finished run; its clusters keep numbers.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The folder of data sets; else PROPOS_DATA.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings and errors.")] = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="End by writing the page of the run.")] = True,
) -> None:
    """Learn clusters from images and write them to a run folder."""
    from propos.cli import training
    from propos.cli.following import follow
    from propos.distributed import joined, rank

    request = training.Request(
        source, clusters, method, recipe, out, seed, epochs, settings or [], config, labels, budget, earlier, data
    )
    with joined():
        if rank() > 0:
            follow(data)
        elif resume:
            training.resume(request, device, quiet, report)
        elif again := training.restarted(request):
            training.resume(again, device, quiet, report)
        else:
            training.start(request, device, quiet, report)
