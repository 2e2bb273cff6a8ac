"""Initialisation of a learner from a pretrained network."""

from __future__ import annotations

import numpy as np
import torch

from propos.data import Source
from propos.distributed import gather, share
from propos.networks import EmaCopy, Tuned, Whitening
from propos.training.embedding import output_batches
from propos.training.features import weights_of_start
from propos.training.learner import Learner

FEATURES = 1024  # rows of features in a batch


def initialise_from_pretrained(learner: Learner, source: Source) -> None:
    """Load pretrained weights into the part that is trained, and fit the whitening to all images' features."""
    online = learner.method.online.backbone
    if isinstance(online, Tuned):
        _initialise_tuned(online, learner, source)
    elif isinstance(online, Whitening):
        parts = (np.arange(start, min(start + FEATURES, len(source))) for start in range(0, len(source), FEATURES))
        online.fit((torch.from_numpy(source.batch(part)) for part in parts), learner.config.network.whitening)
    else:
        return
    for module in learner.method.modules():
        if isinstance(module, EmaCopy):
            module.reset()


def _initialise_tuned(online: Tuned, learner: Learner, source: Source) -> None:
    config = learner.config
    online.load_pretrained(weights_of_start(config))
    local = torch.cat(list(output_batches(online.top, learner.device, source, config, share(len(source)))))
    online.whitening.fit(gather(local, len(source)).split(FEATURES), config.network.whitening)
