"""The process that decodes: jobs come in on standard input, pixels go out on standard output.

A message is the length of a JSON text in eight bytes, the text, and for answers the pixels. Without an open input,
as when the process that started it was killed, it ends.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from jaxtyping import UInt8

from propos.data.decoding.decode import decode
from propos.data.files.content import without_warnings
from propos.data.files.entry import Entry, reason_for

_LENGTH = 8


@dataclass(frozen=True)
class Decoded:
    """What became of a few images: the pixels of those that could be decoded, and why the others could not."""

    images: UInt8[np.ndarray, "n side side C"]
    aspects: list[float]
    failed: dict[int, str]  # by position among those asked for


def decode_all(entries: Sequence[Entry], side: int, channels: int, draft: bool = True) -> Decoded:
    """Decode a few images in this process."""
    images = np.empty((len(entries), side, side, channels), dtype=np.uint8)
    aspects: list[float] = []
    failed: dict[int, str] = {}
    with without_warnings():
        for position, entry in enumerate(entries):
            try:
                images[len(aspects)], aspect = decode(entry, side, channels, draft)
                aspects.append(aspect)
            except Exception as error:  # whatever a stranger's file makes a reader raise, the file is skipped
                failed[position] = reason_for(error)
    return Decoded(images[: len(aspects)], aspects, failed)


def send(stream: IO[bytes], message: dict[str, Any], pixels: memoryview | bytes = b"") -> None:
    """Write one message."""
    text = json.dumps(message).encode()
    stream.write(len(text).to_bytes(_LENGTH, "little") + text)
    stream.write(pixels)
    stream.flush()


def receive(stream: IO[bytes]) -> dict[str, Any] | None:
    """Read one message's text, or nothing when the other side has gone."""
    length = stream.read(_LENGTH)
    text = stream.read(int.from_bytes(length, "little")) if len(length) == _LENGTH else b""
    return json.loads(text) if text and len(text) == int.from_bytes(length, "little") else None


def pack(entry: Entry) -> list[str | None]:
    """Say which image to decode."""
    return [str(entry.path), entry.member, entry.kind]


def main() -> None:
    """Answer jobs until there are no more."""
    # What a library prints must not fall among the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    send(answers, {"ready": True})
    while (job := receive(sys.stdin.buffer)) is not None:
        entries = [Entry("", Path(path), 0, 0, "", member, kind=kind) for path, member, kind in job["entries"]]
        done = decode_all(entries, job["side"], job["channels"], job["draft"])
        try:
            send(answers, {"aspects": done.aspects, "failed": list(done.failed.items())}, done.images.data)
        except BrokenPipeError:
            os._exit(0)  # nobody is left to answer, and nothing left to flush
