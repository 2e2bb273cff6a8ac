"""SimCLR: each image told from all others of the batch."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import plain_head
from propos.networks import Parts
from propos.objectives import NtXent


def simclr(config: Config) -> Method:
    """Tell each image's other view from the other images of the batch."""
    train = Stage(terms=(Term("contrast", NtXent(config.contrast.temperature)),))
    return Method(Parts(projector=plain_head(config, config.network.dimension)), (train,), embeds="online")
