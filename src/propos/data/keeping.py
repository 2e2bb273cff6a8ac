"""Image files as a source: decoded once and kept, or decoded anew."""

from __future__ import annotations

from propos.data.cache import Progress
from propos.data.folder import FolderSource, StreamedSource, open_folder, open_streamed
from propos.data.found import Keeping
from propos.data.headers import Headers
from propos.data.limit import is_cached, refusal
from propos.data.scan import What


def kept_or_streamed(
    what: What, side: int, channels: int | None, progress: Progress | None, keep: Keeping, headers: Headers
) -> FolderSource | StreamedSource:
    """Open images from their cache, building it if it may be built, else stream them."""
    kept = headers.scan.images, headers.small_side or side, channels or headers.channels
    if keep != "stream" and is_cached(*kept):
        return open_folder(what, side, channels, progress, headers=headers)
    if keep == "build" and refusal(*kept) is None:
        return open_folder(what, side, channels, progress, headers=headers)
    return open_streamed(what, side, channels, headers=headers)
