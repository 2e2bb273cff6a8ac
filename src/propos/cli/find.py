"""`propos find`: list the images of a run that are most similar to some images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propos.cli.prechecks import FINISHED_RUN
from propos.cli.rows import as_csv, check_rows_path, write_rows
from propos.cli.streams import say

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float, Int

    from propos.runs import Run

    Found = tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]

COLUMNS = ("image", "cluster", "name", "cosine")


def find(
    run: Annotated[Path, FINISHED_RUN],
    images: Annotated[
        list[str] | None, typer.Argument(metavar="[IMAGE]...", help="Images of the run, by name, or new image files.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="Search by this text instead (runs that started from CLIP).")] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="Number of images.")] = 20,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write them to this .csv or .json file instead.")
    ] = None,
    device: Annotated[str, typer.Option(help="For new images: auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """List the images most similar to some images or a text, the best first; several are searched by their mean."""
    from propos.common.errors import InputError
    from propos.common.plurals import counted
    from propos.runs import Run

    if (text is None) == (not images):
        raise InputError("propos find: give images, or --text TEXT")
    if output is not None:
        check_rows_path(output)
    folder = Run.open(run)
    for note in folder.notes_on_edits():
        say(f"warning: {note}", err=True)
    found, cosines = (
        _like_images(folder, images or [], count, device) if text is None else _by_text(folder, text, count)
    )
    rows = _rows(folder, found.tolist(), cosines.tolist())
    if output is None:
        say(as_csv(COLUMNS, rows).replace("\r\n", "\n").rstrip("\n"))
    else:
        write_rows(COLUMNS, rows, output)
        say(f"{counted(len(rows), 'image')}: {output}")


def _like_images(run: Run, images: list[str], count: int, device: str) -> Found:
    import numpy as np

    from propos.evaluation.retrieval import highest, towards

    known, new = _told_apart(run, images)
    wanted = [run.embedding_rows[np.array(known, np.int64)], *_embedded(run, new, device)]
    skip = np.zeros(len(run.table.images), dtype=bool)
    skip[known] = True
    return highest(run.embedding_rows, towards(np.concatenate(wanted)), count, skip)


def _by_text(run: Run, text: str, count: int) -> Found:
    """Return the images whose features are most like a text: those of CLIP itself, not the run's embeddings."""
    from propos.cli.display import Terminal
    from propos.review.naming import TextSearch
    from propos.runner import open_run_images

    with Terminal(quiet=True) as terminal, open_run_images(run, None, terminal.show_task) as source:
        return TextSearch(run, source, terminal.show_task).find(text, count)


def _told_apart(run: Run, images: list[str]) -> tuple[list[int], list[Path]]:
    """Return the rows of the run's own images, and the files of new ones."""
    from propos.common.errors import InputError, shown

    row_of = {name: row for row, name in enumerate(run.table.images)}
    new = [Path(name) for name in images if name not in row_of]
    for path in new:
        if not path.is_file():
            raise InputError(f"{shown(str(path))}: neither an image of {run.path} nor a file")
    return [row_of[name] for name in images if name in row_of], new


def _embedded(run: Run, paths: list[Path], device: str) -> list[Float[np.ndarray, "1 D"]]:
    """Return the embeddings of new images."""
    if not paths:
        return []
    from propos.runner import open_like
    from propos.training import Model, choose_device

    model, embeddings = Model.from_run(run, choose_device(device)), []
    for path in paths:
        with open_like(model.config, str(path), keep="use") as source:
            embeddings.append(model.embeddings(source).cpu().numpy())
    return embeddings


def _rows(run: Run, found: list[int], cosines: list[float]) -> list[tuple[str, int, str | None, str]]:
    table, names = run.corrected.table, run.corrected.names()
    cluster = table.cluster.tolist()
    return [
        (table.images[row], cluster[row], names.get(cluster[row]), f"{cosine:.4f}")
        for row, cosine in zip(found, cosines, strict=True)
    ]
