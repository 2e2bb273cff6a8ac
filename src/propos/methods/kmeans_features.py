"""K-means on the features of a pretrained network: a baseline."""

from __future__ import annotations

from propos.methods.base import Method, MethodSettings
from propos.methods.setup import Setup


class KMeansFeatures(Method):
    """K-means on the whitened features of a pretrained network; nothing is trained."""

    title = "k-means"
    reference = "k-means on a pretrained network's features"
    verified = "nothing is trained"
    trains = False
    inputs = ("features",)

    def __init__(self, settings: MethodSettings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.online = setup.encoder()
