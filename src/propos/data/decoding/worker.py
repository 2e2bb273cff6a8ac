"""The decoding process: it reads jobs from standard input and writes pixels to standard output.

A message is the length of a JSON text in eight bytes, the text, and in replies the pixels. The process ends when its
input is closed, also if its parent was killed.
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
    """The result of a job: the pixels of decoded images, and the reasons why others failed."""

    pixels: UInt8[np.ndarray, " bytes"]  # one image behind the other
    frames: list[tuple[int, int]]  # rows and columns
    channels: int
    aspects: list[float]
    failed: dict[int, str]  # by position in the job

    @property
    def images(self) -> list[UInt8[np.ndarray, "H W C"]]:
        """The images, in order."""
        ends = np.cumsum([rows * columns * self.channels for rows, columns in self.frames])
        parts = np.split(self.pixels, ends[:-1])[: len(self.frames)]
        return [part.reshape(*frame, self.channels) for part, frame in zip(parts, self.frames, strict=True)]


def decode_all(
    entries: Sequence[Entry], side: int, channels: int, draft: bool = True, shaped: bool = False, middle: int = 0
) -> Decoded:
    """Decode a few images in this process."""
    images: list[UInt8[np.ndarray, "H W C"]] = []
    aspects: list[float] = []
    failed: dict[int, str] = {}
    with without_warnings():
        for position, entry in enumerate(entries):
            try:
                image, aspect = decode(entry, side, channels, draft, shaped, middle)
                images.append(image)
                aspects.append(aspect)
            except Exception as error:  # a damaged file may make a reader raise anything: it is skipped
                failed[position] = reason_for(error)
    pixels = np.concatenate([np.empty(0, np.uint8), *(image.ravel() for image in images)])
    return Decoded(pixels, [image.shape[:2] for image in images], channels, aspects, failed)


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
    """Return the description of an image to decode."""
    return [str(entry.path), entry.member, entry.kind]


def main() -> None:
    """Process jobs until the input ends."""
    # Output of libraries must not mix with replies.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    send(answers, {"ready": True})
    while (job := receive(sys.stdin.buffer)) is not None:
        entries = [Entry("", Path(path), 0, 0, member, kind=kind) for path, member, kind in job["entries"]]
        done = decode_all(entries, **job["layout"])
        answer = {"frames": done.frames, "aspects": done.aspects, "failed": list(done.failed.items())}
        try:
            send(answers, answer, done.pixels.data)
        except BrokenPipeError:
            os._exit(0)  # the parent is gone, and nothing is left to flush
