"""What a method has to beat: k-means on pixels, and on an untrained network's embeddings."""

from __future__ import annotations

from propos.config import Config
from propos.methods.method import Method
from propos.methods.parts import byol_parts
from propos.networks import Parts


def kmeans_pixels(config: Config) -> Method:
    """K-means on the pixels themselves; nothing is trained."""
    return Method(parts=Parts(projector=None), embeds="online")


def kmeans_features(config: Config) -> Method:
    """K-means on the whitened features of a pretrained network; nothing is trained."""
    return Method(parts=Parts(projector=None), embeds="online")


def kmeans_random(config: Config) -> Method:
    """K-means on the embeddings of an untrained network."""
    return Method(parts=byol_parts(config), embeds="online")
