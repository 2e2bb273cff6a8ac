"""Prefetching of images by one thread, a few batches ahead, for any source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Bool, Int, UInt8
from torch import Tensor

from propos.data import Source, prefetch, readable
from propos.distributed.transfer import PinnedRing, send

AHEAD = 3  # batches that are ready or being read

Positions = Int[np.ndarray, " B"]
Images = UInt8[Tensor, "B C H W"]
Arriving = Callable[[], Images]  # returns images on the device


@contextmanager
def reading_ahead(source: Source, device: torch.device) -> Iterator[Source]:
    """Return a context with a source that prefetches announced batches."""
    if isinstance(source, ReadAhead):
        yield cast(Source, source)
        return
    ahead = ReadAhead(source, device)
    try:
        yield cast(Source, ahead)
    except BaseException:
        ahead.close(wait=False)  # a read may never end, as from a pipe; closing the source ends it
        raise
    ahead.close()


def read(source: Source, positions: Positions, device: torch.device) -> Images:
    """Return images on a device; positions after the clustered images refer to the unlabelled ones."""
    if isinstance(source, ReadAhead):
        return source.on_device(positions)
    return send(torch.from_numpy(_batch(source, positions)), device)


class ReadAhead:
    """A wrapper of a source that reads announced batches ahead and sends them to the device."""

    def __init__(self, source: Source, device: torch.device) -> None:
        self._source, self._device = source, device
        self._ring = PinnedRing(device, AHEAD + 1) if device.type == "cuda" else None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="propos-reading")
        self._ahead: dict[bytes, Future[Arriving]] = {}
        self._announced: Iterator[Positions] = iter(())

    @property
    def wrapped(self) -> Source:
        """The wrapped source."""
        return self._source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def __len__(self) -> int:
        return len(self._source)

    def prefetch(self, batches: Iterable[Positions]) -> None:
        """Announce the batches that will be read next, in this order; earlier announcements are dropped."""
        self._forget()
        announced = list(batches)
        self._thread.submit(prefetch, self._source, announced)  # only this thread uses the source
        self._announced = iter(announced)
        self._look_ahead()

    def readable(self, positions: Positions) -> Bool[np.ndarray, " B"]:
        """Return which of the images read so far could be decoded."""
        return readable(self._source, positions)

    def on_device(self, positions: Positions) -> Images:
        """Return the images at these positions on the device, as soon as they are read."""
        reading = self._ahead.pop(_key(positions), None) or self._thread.submit(self._read, positions)
        self._look_ahead()
        return reading.result()()

    def close(self, wait: bool = True) -> None:
        """Stop reading; with `wait`, wait for the batch that is being read."""
        self._forget()
        self._thread.shutdown(wait=wait, cancel_futures=True)

    def _look_ahead(self) -> None:
        while len(self._ahead) < AHEAD and (positions := next(self._announced, None)) is not None:
            self._ahead[_key(positions)] = self._thread.submit(self._read, positions)

    def _forget(self) -> None:
        self._announced = iter(())
        for reading in self._ahead.values():
            reading.cancel()
        self._ahead.clear()

    def _read(self, positions: Positions) -> Arriving:
        images = torch.from_numpy(_batch(self._source, positions))
        return (lambda: send(images, self._device)) if self._ring is None else self._ring.send(images)


def _batch(source: Source, positions: Positions) -> UInt8[np.ndarray, "B C H W"]:
    if source.unlabelled is not None and len(positions) and positions[0] >= len(source):
        return source.unlabelled.batch(positions - len(source))
    return source.batch(positions)


def _key(positions: Positions) -> bytes:
    return np.asarray(positions, dtype=np.int64).tobytes()
