"""The networks: backbones, heads, and the twin of online and target."""

from propos.networks.heads import Head, Mlp
from propos.networks.parts import EVERY_PART, PartName, Parts
from propos.networks.precision import autocast
from propos.networks.resnet import ResNet, backbone, feature_width, smallest_side
from propos.networks.twin import Encoder, TwinNetwork, build_network

__all__ = [
    "EVERY_PART",
    "Encoder",
    "Head",
    "Mlp",
    "PartName",
    "Parts",
    "ResNet",
    "TwinNetwork",
    "autocast",
    "backbone",
    "build_network",
    "feature_width",
    "smallest_side",
]
