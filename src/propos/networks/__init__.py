"""The networks: backbones, heads, and the twin of online and target."""

from propos.networks.centres import Centres, CentreSets
from propos.networks.decoder import Decoder, Decoding
from propos.networks.discriminator import Discriminating, Discriminator
from propos.networks.heads import Head, Heads, Mlp, restart
from propos.networks.parts import EVERY_PART, PartName, Parts
from propos.networks.precision import autocast
from propos.networks.pretrained import (
    EXTRA,
    PRETRAINED,
    Pretrained,
    Weights,
    find_pretrained,
    installed,
    origin_of,
    read_pretrained,
)
from propos.networks.resnet import ResNet, backbone, feature_width, smallest_side
from propos.networks.seeing import Seeing
from propos.networks.tuned import Tuned, Tuning, trunk_features
from propos.networks.twin import Encoder, TwinNetwork, build_network
from propos.networks.whitening import Whitening

__all__ = [
    "EVERY_PART",
    "EXTRA",
    "PRETRAINED",
    "CentreSets",
    "Centres",
    "Decoder",
    "Decoding",
    "Discriminating",
    "Discriminator",
    "Encoder",
    "Head",
    "Heads",
    "Mlp",
    "PartName",
    "Parts",
    "Pretrained",
    "ResNet",
    "Seeing",
    "Tuned",
    "Tuning",
    "TwinNetwork",
    "Weights",
    "Whitening",
    "autocast",
    "backbone",
    "build_network",
    "feature_width",
    "find_pretrained",
    "installed",
    "origin_of",
    "read_pretrained",
    "restart",
    "smallest_side",
    "trunk_features",
]
