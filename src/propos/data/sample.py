"""A sample of a source's images, from which planning chooses how all of them are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from propos.data.arrays import ArraySource
from propos.data.decoding.worker import decode_all
from propos.data.source import Source, evenly_spaced
from propos.data.unopened import UnopenedSource

SIDE = 128  # pixels at which an image is decoded; questions that need fewer get it resized


@dataclass(frozen=True)
class Sample:
    """Images spread over a source. Each file is decoded at most once, however many questions are asked of it."""

    unopened: UnopenedSource
    decoded: dict[int, Image.Image | None] = field(default_factory=dict)  # by position; None: unreadable

    def files(self, count: int, side: int) -> Iterator[UInt8[np.ndarray, "S S C"]]:
        """Decode `count` image files, squashed to squares; skip those that cannot be read."""
        assert self.unopened.scan is not None
        mode = "L" if self.unopened.channels == 1 else "RGB"
        for position in evenly_spaced(len(self.unopened.scan.images), count).tolist():
            image = self._decode(position)
            if image is not None:
                image = image.convert(mode)
                if side != SIDE:
                    image = image.resize((side, side), Image.Resampling.BICUBIC)
                yield np.asarray(image).reshape(side, side, self.unopened.channels)

    def source(self, count: int, side: int) -> Source | None:
        """Return `count` images as a source, or None if none can be read; an array, in memory already, whole."""
        if self.unopened.scan is None:
            return self.unopened.open(side)
        images = list(self.files(count, side))
        return ArraySource(np.stack(images), None, "a sample") if images else None

    def _decode(self, position: int) -> Image.Image | None:
        assert self.unopened.scan is not None
        if position not in self.decoded:
            entry = self.unopened.scan.images[position]
            images = decode_all([entry], SIDE, self.unopened.channels).images
            self.decoded[position] = Image.fromarray(images[0].squeeze()) if images else None
        return self.decoded[position]
