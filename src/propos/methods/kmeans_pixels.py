"""K-means on raw pixels: a baseline."""

from __future__ import annotations

from torch import nn

from propos.methods.base import Method, MethodSettings
from propos.methods.setup import Setup
from propos.networks import Encoder


class KMeansPixels(Method):
    """K-means on the pixels themselves; nothing is trained."""

    title = "k-means on pixels"
    reference = "k-means"
    verified = "nothing is trained"
    trains = False

    def __init__(self, settings: MethodSettings, setup: Setup) -> None:
        super().__init__(settings, setup)
        self.online = Encoder(nn.Flatten(), setup.channels * setup.views.size**2)
