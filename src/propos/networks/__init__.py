"""Networks: backbones, encoders, heads, moving averages, and memories that are kept between steps."""

from propos.networks.cluster_heads import ClusterHeads
from propos.networks.ema import EmaCopy
from propos.networks.encoder import Encoder
from propos.networks.fine_tuning import Tuned, Tuning, trunk_features
from propos.networks.frozen_backbone import FrozenBackbone
from propos.networks.grouped_norm import BatchGroups
from propos.networks.hub import SHORT_NAMES, is_hub, names_network
from propos.networks.hub_text import Reader, can_read, reader_of
from propos.networks.memory import Bank, Memory, Neighbours, Queue, labels_of
from propos.networks.mlp import Float32, Mlp, initialise_small, mlp_layers, reinitialise
from propos.networks.norm import BatchNorm, in_groups
from propos.networks.parallel import pass_rows, pass_views, threads_of_a_pass
from propos.networks.precision import autocast
from propos.networks.pretrained import (
    EXTRA,
    PRETRAINED,
    Classifier,
    Pretrained,
    Weights,
    classifier_of,
    find_pretrained,
    installed,
    network_of,
    origin_of,
    read_copy,
    read_pretrained,
)
from propos.networks.prototype_layer import PrototypeLayer
from propos.networks.resnet import ResNet, backbone, feature_width, smallest_side
from propos.networks.whitening import Whitening

__all__ = [
    "EXTRA",
    "PRETRAINED",
    "SHORT_NAMES",
    "Bank",
    "BatchGroups",
    "BatchNorm",
    "Classifier",
    "ClusterHeads",
    "EmaCopy",
    "Encoder",
    "Float32",
    "FrozenBackbone",
    "Memory",
    "Mlp",
    "Neighbours",
    "Pretrained",
    "PrototypeLayer",
    "Queue",
    "Reader",
    "ResNet",
    "Tuned",
    "Tuning",
    "Weights",
    "Whitening",
    "autocast",
    "backbone",
    "can_read",
    "classifier_of",
    "feature_width",
    "find_pretrained",
    "in_groups",
    "initialise_small",
    "installed",
    "is_hub",
    "labels_of",
    "mlp_layers",
    "names_network",
    "network_of",
    "origin_of",
    "pass_rows",
    "pass_views",
    "read_copy",
    "read_pretrained",
    "reader_of",
    "reinitialise",
    "smallest_side",
    "threads_of_a_pass",
    "trunk_features",
]
