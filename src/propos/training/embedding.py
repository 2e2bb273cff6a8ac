"""Embedding images: the plain view through an encoder in evaluation mode, ℓ2-normalised."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from propos.augment import plain_view
from propos.config import Config
from propos.data import Source
from propos.networks import Encoder

BATCH = 512


def embed(encoder: Encoder, source: Source, config: Config) -> Float[Tensor, "N D"]:
    """Return the embeddings of all images, on the encoder's device."""
    return torch.cat(list(embed_batches(encoder, source, config)))


@torch.no_grad()
def embed_batches(encoder: Encoder, source: Source, config: Config) -> Iterator[Float[Tensor, "B D"]]:
    """Yield the embeddings of the images in order, a batch at a time."""
    assert config.pixels.mean is not None
    assert config.pixels.std is not None
    device = next(encoder.parameters()).device
    was_training = encoder.training
    encoder.eval()
    try:
        for start in range(0, len(source), BATCH):
            images = torch.from_numpy(source.batch(np.arange(start, min(start + BATCH, len(source))))).to(device)
            pixels = plain_view(images, config.views.size, config.pixels.mean, config.pixels.std)
            yield F.normalize(encoder(pixels), dim=1)
    finally:
        encoder.train(was_training)
