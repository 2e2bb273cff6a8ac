"""IDEC: DEC that goes on to make its images again while it clusters them (Guo et al., IJCAI 2017)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.autoencoder import autoencoding
from propos.methods.method import Method, Term
from propos.objectives import Reconstruction, Sharpening

SHARPENING = 0.1  # γ: how much clusters count beside the images themselves


def idec(config: Config) -> Method:
    """Learn to make images again from their embeddings; then also to be surer of their clusters.

    Losses and their weight are those of its public code; all else is as in `dec`, whose autoencoder that code is given.
    """
    terms = Term("reconstruction", Reconstruction()), Term("sharpening", Sharpening(), weight=SHARPENING)
    return autoencoding(config, terms, trains=("backbone", "projector", "cluster_head", "decoder"))
