"""IDEC: DEC whose decoder is trained in the second stage too (Guo et al., IJCAI 2017)."""

from __future__ import annotations

from propos.methods.dec import Dec
from propos.methods.variant import variant


@variant(Dec, sharpening_weight=0.1, reconstruction_weight=1.0)
class Idec:
    """Train an autoencoder; then keep its reconstructions while assignments to the centres become more confident.

    Losses and their weights are those of its public code, which starts from DEC's autoencoder. All else is as in DEC.
    """

    year, reference = 2017, "Guo et al., IJCAI"
    verified = "losses and their weight against its public code; see the docs"
