"""CC whose cluster head is replaced by prototype scattering between the two online views."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method, Stage, Term
from propos.methods.parts import plain_head
from propos.networks import Parts
from propos.objectives import NtXent, PrototypeScattering


def cc_psl(config: Config) -> Method:
    """Tell images apart as CC does; scatter the clusters of k-means in place of a cluster head."""
    train = Stage(
        terms=(
            Term("contrast", NtXent(config.contrast.temperature)),
            Term("psl", PrototypeScattering(config.psl.temperature), config.psl.weight, starts=config.psl_start),
        ),
    )
    return Method(Parts(projector=plain_head(config, config.network.dimension)), (train,), embeds="online")
