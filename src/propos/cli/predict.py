"""`propos predict`: assign new images to a run's clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from propos.cli.prechecks import FINISHED_RUN, is_only_process
from propos.cli.streams import say


def predict(
    run: Annotated[Path, FINISHED_RUN],
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="New images, as for `propos run`, or one image.")],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Output table (.csv, .parquet or .json); must not exist."),
    ],
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    reject: Annotated[
        str | None,
        typer.Option(
            metavar="1%",
            help="Give cluster -1 to images farther from their cluster than all but this share of the run's images.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings and errors.")] = False,
) -> None:
    """Assign new images to the clusters of a finished run."""
    from propos.evaluation.rejection import parse_share
    from propos.runs import Run, StoredBlocks

    share = None if reject is None else parse_share(reject)
    if is_only_process():
        StoredBlocks(output).check_output()  # before torch is imported
    from propos.cli.display import Terminal
    from propos.common.plurals import counted
    from propos.distributed import join_process_group, rank
    from propos.runner import (
        agree_on_predictions,
        announced_predictions,
        following_first_process,
        open_like,
        rejecting_model,
        write_predictions,
    )
    from propos.training import Model, choose_device

    with (
        join_process_group(),
        Terminal(quiet or rank() > 0, mute=rank() > 0) as terminal,  # only rank 0 prints
        following_first_process(),
    ):
        announced = announced_predictions(source)
        StoredBlocks(output).check_output()
        folder = Run.open(run)
        model = rejecting_model(folder, Model.from_run(folder, choose_device(device)), share)
        # Images that are read once are not cached.
        with open_like(model.config, source, keep="use") as images:
            for note in (*folder.notes_on_edits(), *images.notes):
                terminal.warn(note)
            key = agree_on_predictions(model, images, source, announced)
            with terminal.show_task("Predicting") as progress:
                rows = write_predictions(model, images, output, key, progress)
            if rank() > 0:
                return
            for skipped in images.skipped:
                say(f"skipped {skipped.path}: {skipped.reason}", err=True)
            terminal.note(f"{counted(rows, 'image')}: {output}")
