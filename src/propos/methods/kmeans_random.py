"""K-means on the embeddings of an untrained network: a baseline."""

from __future__ import annotations

from propos.methods.base import Method, MethodSettings
from propos.methods.setup import Setup
from propos.networks import Mlp


class KMeansRandom(Method):
    """K-means on the embeddings of an untrained network, the one that BYOL would train."""

    title = "k-means on an untrained network"
    reference = "k-means on an untrained network's embeddings"
    verified = "nothing is trained"
    trains = False

    def __init__(self, settings: MethodSettings, setup: Setup) -> None:
        super().__init__(settings, setup)
        hidden, dimension = setup.network.hidden, setup.network.dimension
        self.online = setup.encoder(lambda width: Mlp(width, hidden, dimension))
