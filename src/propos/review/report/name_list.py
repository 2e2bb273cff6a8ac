"""Names of images in little space: each gives only what differs from the one before it.

A page of ten million images could not hold their names as texts. `web/src/names.ts` reads the list.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int, UInt8

from propos.review.report.payload import packed

BLOCK = 64  # names from one that is written whole to the next
LONGEST = 255  # bytes that a name may share with the one before it
CHUNK = 64 * BLOCK  # names that are compared at once


def pack_names(names: Sequence[str]) -> dict[str, str] | None:
    """Return the names as text; None if they are the numbers from 0 on.

    A name is a byte with the length that it shares with the name before it, then the rest and a line break.
    """
    if all(name == str(number) for number, name in enumerate(names)):
        return None
    parts = [_shortened(names[start : start + CHUNK]) for start in range(0, len(names), CHUNK)]
    return packed(np.frombuffer(b"".join(parts), np.uint8), "u8")


def _shortened(names: Sequence[str]) -> bytes:
    """Return a chunk of names, each without the bytes that it shares with the name before it."""
    encoded = [name.encode() for name in names]
    shared = _shared(encoded).tolist()
    parts: list[bytes] = []
    for name, length in zip(encoded, shared, strict=True):
        parts += (bytes((length,)), name[length:], b"\n")
    return b"".join(parts)


def _shared(encoded: Sequence[bytes]) -> Int[np.ndarray, " n"]:
    """Return the number of bytes that each name shares with the one before it; 0 at the start of a block."""
    starts = np.array([name[:LONGEST] for name in encoded], f"S{LONGEST}")
    letters: UInt8[np.ndarray, "n L"] = starts.view(np.uint8).reshape(len(encoded), LONGEST)
    differ = letters[1:] != letters[:-1]
    whole = np.array([min(len(name), LONGEST) for name in encoded])
    shared = np.zeros(len(encoded), np.int64)
    shared[1:] = np.where(differ.any(axis=1), differ.argmax(axis=1), whole[1:])
    shared[::BLOCK] = 0
    return shared
