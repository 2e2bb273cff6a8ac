"""The images a run was made of, if they are still there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from propos.config import Config
from propos.data import FolderSource, Source, cache_side, find_configured, is_benchmark, unescape_name
from propos.errors import InputError
from propos.report.progress import Progress


class Gone(Exception):  # noqa: N818 - not an error: the page is written without pictures
    """The images cannot be shown; the text says why."""


def open_images(config: Config, names: Sequence[str], progress: Progress) -> Source:
    """Open the run's source, or say why its images cannot be shown."""
    if config.source is None:
        raise Gone("The run was made of an array in memory, so there are no pictures.")
    try:
        source = find_configured(config).open(cache_side(config.views), progress=progress)
    except (InputError, OSError) as error:
        gone = not is_benchmark(config.source) and not Path(config.source).exists()
        why = f"{config.source} is no longer there" if gone else f"the images cannot be read ({error})"
        raise Gone(f"There are no pictures, because {why}.") from None
    check_same(source, names)
    return source


def check_same(source: Source, names: Sequence[str]) -> None:
    """Refuse to show images under other names than the run's."""
    if list(source.image_names()) != list(names):
        raise Gone("There are no pictures, because images were added, renamed or removed since the run.")


def address_of_originals(source: Source) -> str | None:
    """Return the address of the folder to which the images' names are relative, where a browser can open them."""
    if not isinstance(source, FolderSource):
        return None
    root = source.root.absolute()
    if any(
        entry.member is not None or entry.path.absolute() != root / unescape_name(entry.name)
        for entry in source.entries
    ):
        return None
    return Path(root).as_uri() + "/"
