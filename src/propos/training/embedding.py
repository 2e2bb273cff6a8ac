"""Outputs of networks in eval mode for plain views; embeddings are ℓ2-normalised projections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from propos.augment import shapes_of
from propos.config import Config
from propos.data import Source, prefetch
from propos.distributed import gather, share
from propos.methods import Method
from propos.networks import Encoder, autocast, pass_rows, threads_of_a_pass
from propos.training.features import plain
from propos.training.prefetch import read, reading_ahead

BATCH = 512
LARGE = 32  # batch size for a whole pretrained network: larger ones are no faster and take more memory


def embed(encoder: Encoder, source: Source, config: Config) -> Float[Tensor, "n D"]:
    """Return the embeddings of this process's share of the images, on the encoder's device."""
    local = share(len(source))
    (embeddings,) = collect(((batch,) for batch in embed_batches(encoder, source, config, local)), length(local))
    return embeddings


def collect(batches: Iterable[tuple[Tensor, ...]], rows: int) -> tuple[Tensor, ...]:
    """Return the tables whose rows the batches have; only one batch is in memory twice."""
    tables: tuple[Tensor, ...] = ()
    start = 0
    for batch in batches:
        tables = tables or tuple(part.new_empty((rows, *part.shape[1:])) for part in batch)
        for table, part in zip(tables, batch, strict=True):
            table[start : start + len(part)] = part
        start += len(batch[0])
    assert start == rows
    return tables


def length(rows: slice) -> int:
    """Return the number of rows of a slice."""
    return int(rows.stop - rows.start)


def embed_batches(
    encoder: Encoder, source: Source, config: Config, which: slice | None = None
) -> Iterator[Float[Tensor, "B D"]]:
    """Yield the embeddings of the images, or of some of them, in order, a batch at a time."""
    for projections in output_batches(encoder, encoder.device, source, config, which):
        yield F.normalize(projections, dim=1)


class _Outputs(nn.Module):
    """A method's outputs for plain views: embeddings, features and probabilities."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method

    def forward(self, images: Float[Tensor, "B ..."]) -> tuple[Tensor, Tensor, Tensor | None]:
        return self.method.outputs(images)


def method_output_batches(
    method: Method, source: Source, config: Config, which: slice | None = None
) -> Iterator[tuple[Float[Tensor, "B D"], Float[Tensor, "B F"], Float[Tensor, "B K"] | None]]:
    """Yield embeddings, backbone features and the cluster head's probabilities of images, a batch at a time."""
    return output_batches(_Outputs(method), method.online.device, source, config, which)


def head_clusters(method: Method, source: Source, config: Config) -> Int[Tensor, " N"] | None:
    """Return the cluster that the method's cluster head, if it has one, assigns each image to."""
    if not method.has_head:
        return None
    local = output_batches(_Assigned(method), method.online.device, source, config, share(len(source)))
    return gather(torch.cat([logits.argmax(dim=1) for logits in local]), len(source))


class _Assigned(nn.Module):
    """The logits of a method's cluster head for images."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method

    def forward(self, images: Float[Tensor, "B ..."]) -> Tensor | None:
        return self.method.assign(self.method.online.backbone(images))


def embedding_batch_size(config: Config) -> int:
    """Return the batch size for embedding."""
    return LARGE if config.start.learns == "all" else BATCH


def batches_in_order(images: slice, batch: int) -> Iterator[Int[np.ndarray, " B"]]:
    """Yield the positions of consecutive images, a batch at a time."""
    for start in range(images.start, images.stop, batch):
        yield np.arange(start, min(start + batch, images.stop))


def _in_float32(made: Any) -> Any:
    """Return a network's outputs, a tensor or several, in float32."""
    if isinstance(made, tuple):
        return tuple(_in_float32(one) for one in made)
    return None if made is None else made.float()


@torch.no_grad()
def output_batches(
    part: nn.Module, device: torch.device, source: Source, config: Config, which: slice | None = None
) -> Iterator[Any]:
    """Yield the outputs of a module in eval mode for images in order, a batch at a time."""
    was_training = part.training
    part.eval()
    which = which or slice(0, len(source))
    try:
        with reading_ahead(source, device) as ahead:
            prefetch(ahead, batches_in_order(which, embedding_batch_size(config)))
            for positions in batches_in_order(which, embedding_batch_size(config)):
                view = plain(read(ahead, positions, device), config, shapes_of(source, positions))
                yield _in_float32(_passed(part, view, config.train.precision))
    finally:
        part.train(was_training)


def _passed(part: nn.Module, view: Tensor, precision: str) -> Any:
    """Pass a view through a module; on a CPU its halves at the same time."""

    def passed(rows: Tensor) -> Any:
        with autocast(view.device, precision):
            return part(rows)

    if view.device.type != "cpu":
        return passed(view)
    with threads_of_a_pass(view.device):
        return pass_rows(part, view, passed)
