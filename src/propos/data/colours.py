"""Whether images that are stored in colour are grey all the same, from the pixels of some of them."""

from __future__ import annotations

from dataclasses import replace

from propos.data.decoding.worker import decode_all
from propos.data.photographs import spread
from propos.data.unopened import UnopenedSource

ASKED, SIDE = 200, 64
TINT = 3  # of 255: what rounding leaves between channels that are alike


def without_colours(unopened: UnopenedSource) -> UnopenedSource:
    """Return image files as greyscale where every one that is asked holds no colour, though it is stored with three."""
    if unopened.headers is None or unopened.channels == 1:
        return unopened
    entries = unopened.headers.scan.images
    found = False
    for position in spread(len(entries), ASKED):
        for image in decode_all([entries[position]], SIDE, unopened.channels).images:
            if int((image.max(axis=2) - image.min(axis=2)).max()) > TINT:
                return unopened
            found = True
    return replace(unopened, channels=1) if found else unopened
