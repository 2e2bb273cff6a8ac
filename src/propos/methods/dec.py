"""DEC: an autoencoder's embeddings, then clusters that learn from what they are surest of (Xie et al., ICML 2016)."""

from __future__ import annotations

from propos.config import Config
from propos.methods.autoencoder import autoencoding
from propos.methods.method import Method, Term
from propos.objectives import Sharpening


def dec(config: Config) -> Method:
    """Learn to make images again from their embeddings; then, without the decoder, to be surer of their clusters.

    As in its public code, but: embeddings and centres are unit vectors, whose distances a temperature scales; the
    recipe's network in place of fully connected layers, learnt at once and not one by one with dropout; beside each
    image one random view of it; targets anew before each epoch. Unverified: how often the paper's runs had them.
    """
    terms = (Term("sharpening", Sharpening()),)
    return autoencoding(config, terms, trains=("backbone", "projector", "cluster_head"))
