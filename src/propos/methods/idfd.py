"""IDFD (Tao et al., 2021): instance discrimination against a bank of all images, and features decorrelated."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import BankSpec, Method, Stage, Term
from propos.networks import Head, Parts
from propos.objectives import FeatureDecorrelation, InstanceSoftmax


def idfd(config: Config) -> Method:
    """Tell each image from the remembered embeddings of all others, and each feature from the other features."""
    apart = config.decorrelation
    train = Stage(
        terms=(
            Term("instances", InstanceSoftmax(config.contrast.temperature)),
            Term("decorrelation", FeatureDecorrelation(apart.temperature), apart.weight),
        ),
        bank=BankSpec(config.bank.momentum),
    )
    return Method(Parts(projector=Head((config.network.dimension,))), (train,), embeds="online")
