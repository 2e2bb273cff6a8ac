"""The original files of a run's images, by row number."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from propos.data import unescape_name
from propos.runs import Run

# Image types that browsers show, by their first bytes, never by name.
KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"RIFF", "image/webp"),
)


class Originals:
    """The image files of a run's folder; other sources have none."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @cached_property
    def root(self) -> Path | None:
        """The folder to which the images' names are relative."""
        source = self.run.config.source
        return Path(source).resolve() if source is not None and Path(source).is_dir() else None

    def file(self, row: int) -> tuple[Path, str] | None:
        """Return the file of a row and its media type; None if a link leads out of the folder."""
        if self.root is None or not 0 <= row < len(self.run.table.images):
            return None
        path = (self.root / unescape_name(self.run.table.images[row])).resolve()
        kind = browser_kind(path) if path.is_relative_to(self.root) else None
        return None if kind is None else (path, kind)


def browser_kind(path: Path) -> str | None:
    """Return the media type of an image file that browsers show; None for any other file."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            start = file.read(16)
    except OSError:
        return None
    return next((kind for mark, kind in KINDS if start.startswith(mark)), None)
