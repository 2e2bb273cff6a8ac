"""`propos predict`: put new images into a run's clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def predict(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    source: Annotated[str, typer.Argument(help="New images: a folder, one image, a .npy or .npz file, or: digits.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The table to write: .csv, .parquet or .json.")],
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Put new images into the clusters of a finished run."""
    from propos.runs import Clusters, RunFolder, check_table_path, write_table

    check_table_path(output)
    folder = RunFolder.open(run)

    from propos.data import cache_side, find_source
    from propos.training import Model, choose_device

    model = Model.from_run(folder, choose_device(device))
    pixels = model.config.pixels
    images = find_source(source, pixels.black, pixels.white).open(cache_side(model.config.views), model.channels)
    for skipped in images.skipped:
        typer.echo(f"skipped {skipped.path}: {skipped.reason}", err=True)
    found = model.predict(images)
    table = Clusters(list(images.image_names()), found.cluster, found.confidence, found.distance, images.labels)
    write_table(table, output)
    typer.echo(f"{len(images):,} images: {output}")
