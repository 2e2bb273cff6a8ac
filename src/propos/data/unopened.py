"""A source that was surveyed but not opened yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from propos.data.cache.images import Progress
from propos.data.files.classes import FolderLabels
from propos.data.files.entry import Skipped
from propos.data.files.scan import Scan
from propos.data.source import Source

# Of image files: keep them decoded unless they are too many, only use what is kept already, or decode them every time.
CachePolicy = Literal["build", "use", "stream"]


class Open(Protocol):
    """Reads the images of a source, where they are files as squares of this side, or in their shape."""

    def __call__(
        self,
        side: int,
        channels: int | None = None,
        progress: Progress | None = None,
        keep: CachePolicy = "build",
        shaped: bool = False,
    ) -> Source:
        """Return the source."""
        ...


@dataclass(frozen=True)
class UnopenedSource:
    """A source that was surveyed but not opened yet: enough to choose how to read it."""

    images: int
    channels: int
    height: int
    width: int
    open: Open
    labelled: bool  # labels are known, or will be when it is opened
    skipped: list[Skipped] = field(default_factory=list)
    scan: Scan | None = None  # of image files
    folders: FolderLabels | None = None  # the classes that their folders give them
    published: str | None = None  # the name of the published set it is
