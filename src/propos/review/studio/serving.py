"""Starting Studio's server; one at a time for a folder of runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from propos.common.errors import InputError
from propos.review.server.serving import Stop, serve_application
from propos.review.studio.app import studio_application
from propos.review.studio.mounted import Mounted
from propos.review.studio.places import Places
from propos.review.studio.studio import OWN, Studio
from propos.runs import FolderLocked, lock_folder


def serve_studio(runs: Path, roots: Sequence[Path], port: int, ready: Callable[[str, Stop], None]) -> list[str]:
    """Serve Studio for a folder of runs; call `ready` with the address and a function that stops the server.

    Return the names of the runs that continue to compute.
    """
    if os.name == "nt":
        raise InputError(
            "propos studio needs Linux or macOS: on Windows use propos inspect, propos run and propos open"
        )
    for root in roots:
        if not root.is_dir():
            raise InputError(f"{root}: no such folder")
    try:
        with lock_folder(runs / OWN):
            studio = Studio(runs, Places(roots))
            try:
                serve_application(Mounted(studio_application(studio), studio.listing), port, ready)
            finally:
                studio.close()
            return [work.run for work in studio.queue.all if work.heavy and work.state == "working"]
    except FolderLocked:
        raise InputError(f"{runs}: propos studio is open for these runs already: use its window, or end it") from None
