"""Search of a run's images by a text, with CLIP's own features: the run's embeddings do not know texts."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from propos.common.errors import InputError
from propos.common.progress import ShowTask, show_nothing
from propos.data import Source
from propos.networks import can_read, reader_of
from propos.review.naming.classes import CLIP, PART, directions, image_features
from propos.runner import open_run_images
from propos.runs import Run


class TextSearch:
    """The part of a run's network that reads, and the features of its images."""

    def __init__(self, run: Run, source: Source, show_task: ShowTask = show_nothing) -> None:
        if not finds_texts(run):
            raise InputError(f"{run.path}: its network cannot read: a search by text needs CLIP ({CLIP})")
        self._reader = reader_of(run.config.start)
        self._features = image_features(run, source, show_task)

    def find(self, text: str, count: int) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Return the rows of the images most like a text, the best first, and their cosines to it."""
        wanted, images = self._reader.embed([text])[0], len(self._features)
        parts = (np.arange(start, min(start + PART, images)) for start in range(0, images, PART))
        cosines = np.concatenate([(directions(self._features.batch(part)) @ wanted).numpy() for part in parts])
        best = np.argsort(-cosines, kind="stable")[:count]
        return best, cosines[best]


def finds_texts(run: Run) -> bool:
    """Return whether a run's images can be found by texts."""
    start = run.config.start
    return start.has_frozen_part and start.learns == "nothing" and can_read(start)


def text_search(run: Run) -> Callable[[str, int], list[int]] | None:
    """Return a search for the page's server, which reads network and features when it is first used; None without."""
    if not finds_texts(run):
        return None
    made: list[TextSearch] = []
    lock = threading.Lock()

    def search(text: str, count: int) -> list[int]:
        with lock:
            if not made:
                with open_run_images(run, None, show_nothing) as source:
                    made.append(TextSearch(run, source))
            rows: list[int] = made[0].find(text, count)[0].tolist()
            return rows

    return search
