"""The networks: backbones, heads, and the twin of online and target."""

from propos.networks.heads import Mlp
from propos.networks.resnet import ResNet, backbone, smallest_side
from propos.networks.twin import Encoder, TwinNetwork, build_network

__all__ = ["Encoder", "Mlp", "ResNet", "TwinNetwork", "backbone", "build_network", "smallest_side"]
