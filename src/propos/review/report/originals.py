"""The images of a run, if they still exist."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from propos.common.progress import ShowTask
from propos.data import FolderSource, Selection, Source, StreamedSource, select_names
from propos.runner.sources import NoImages, open_run_images
from propos.runs import Run


class ImagesUnavailable(Exception):  # noqa: N818 - not an error: the page is written without pictures
    """The images cannot be shown; the text is the reason."""


@contextmanager
def open_images(run: Run, show_task: ShowTask, source: Source | None = None) -> Iterator[Source]:
    """Open the images of a run's table, or take them from an open source; raise ImagesUnavailable if that fails."""
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(open_run_images(run, show_task=show_task)) if source is None else source
        except (NoImages, OSError) as error:
            raise ImagesUnavailable(_in_words(error, run)) from None
        images = select_names(opened, run.table.images)  # damaged ones are not in the table
        _check_same(images, run.table.images)
        yield images


def _in_words(error: NoImages | OSError, run: Run) -> str:
    why = error.why if isinstance(error, NoImages) else "unreadable"
    if why == "in memory":
        return "The images were an array in memory, so there are no pictures."
    reasons = {
        "gone": f"{run.config.source} no longer exists",
        "changed": "images were added, changed, renamed or removed since the run",
        "unreadable": f"the images cannot be read ({error})",
    }
    return f"There are no pictures, because {reasons[why]}."


def _check_same(source: Source, names: Sequence[str]) -> None:
    """Raise ImagesUnavailable if the images' names are not the run's."""
    own = source.image_names()
    if len(own) != len(names) or not all(map(operator.eq, own, names)):
        raise ImagesUnavailable("There are no pictures, because images were added, renamed or removed since the run.")


def address_of_originals(source: Source) -> str | None:
    """Return the address of the folder to which the images' names are relative, where a browser can open them."""
    source = source.source if isinstance(source, Selection) else source
    if not isinstance(source, FolderSource | StreamedSource):
        return None
    if not source.entries.single_files:
        return None
    return source.root.absolute().as_uri() + "/"
