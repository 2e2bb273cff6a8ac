"""What a method changes in a recipe's settings, and what its authors trained it with at the paper's scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from propos.config import Config

# Keys are always shuffled: normalised beside its query, a key would be told by their common statistics.
_MOCO = {
    "network.momentum": 0.99,
    "network.bn_groups": 4,
    "network.shuffle_bn": True,
    "train.weight_decay": 1e-4,
    "queue.size": 4096,
    "contrast.temperature": 1.0,
}
# Without a target encoder there is nothing to shuffle. SimSiam was trained as ProPos was, each GPU normalising its own
# images; CC's code knows one device, and SimCLR's normalises over all of them.
_NO_TARGET = {"network.shuffle_bn": False}
_ONE_GROUP = {"network.bn_groups": 1, "network.shuffle_bn": False}
_ADAM = {
    "train.optimiser": "adam",
    "train.lr": 3e-4,
    "train.schedule": "constant",
    "train.warmup": 0,
    "train.weight_decay": 0.0,
}

# Heads of K clusters and of seven times as many learn with the network, as Adam does: IIC and PICA.
_OF_HEADS = {**_ADAM, **_ONE_GROUP, "train.lr": 1e-3, "overclustering.times": 7}
_AUTOENCODER = {**_ADAM, **_ONE_GROUP, "train.lr": 1e-3, "contrast.cluster_temperature": 0.1}
_TEMI = {"heads.count": 16, "heads.lr": 4e-3, "neighbours.count": 50}

# Part of the method whatever it is trained on. One that builds on a trained network says whose, by default, and for
# which share of the epochs that is trained first: DCBoost and CoNR were put in at epoch 800 of 1,000.
OWN: Mapping[str, Mapping[str, Any]] = {
    "moco": _MOCO,
    "pcl": _MOCO,
    "simsiam": _NO_TARGET,
    "simclr": _ONE_GROUP,
    "cc": {**_ADAM, **_ONE_GROUP},
    "cc-psl": {**_ADAM, **_ONE_GROUP},
    "scan": {"pretext.method": "simclr", "pretext.share": 0.625},
    "nnm": {"pretext.method": "simclr", "pretext.share": 0.66, "heads.count": 3},
    "temi": {"pretext.method": "simclr", "pretext.share": 0.5, **_TEMI},
    "spice": {
        "pretext.method": "moco",
        "pretext.share": 0.5,
        "heads.count": 10,
        "heads.lr": 1e-2,
        "neighbours.count": 10,
    },
    "dcboost": {"pretext.method": "propos", "pretext.share": 0.8},
    "conr": {"pretext.method": "byol", "pretext.share": 0.8, "neighbours.count": 10},
    "dec": _AUTOENCODER,
    "idec": _AUTOENCODER,
    "deepcluster": _ONE_GROUP,
    "dccm": {**_ADAM, **_ONE_GROUP, "train.lr": 1e-3, "confident.above": 0.9},
    "swav": {**_ONE_GROUP, "contrast.temperature": 0.1},
    "gcc": {**_ONE_GROUP, "contrast.temperature": 0.1, "balance.weight": 2.0, "neighbours.count": 5},
    "iic": {**_OF_HEADS, "heads.count": 5},
    "pica": {**_OF_HEADS, "balance.weight": 2.0},
    "idfd": {**_ONE_GROUP, "contrast.temperature": 1.0},
    "tcl": {**_ADAM, **_ONE_GROUP, "train.lr": 1e-3, "train.weight_decay": 1e-4},
    "localagg": {**_ONE_GROUP, "contrast.temperature": 0.07, "overclustering.times": 30},
    "secu": {
        **_ONE_GROUP,
        "contrast.temperature": 0.05,
        "contrast.cluster_temperature": 0.05,
        "balance.weight": 1.0,  # a small run has too few steps for the authors' 0.1 to fill clusters
    },
    "mice": {
        **_ONE_GROUP,
        "network.momentum": 0.99,
        "train.weight_decay": 1e-4,
        "queue.size": 1024,
        "contrast.temperature": 1.0,
        "contrast.cluster_temperature": 1.0,
    },
}

# Sizes and rates that belong to the paper's recipes; a small recipe keeps its own. `train.lr` is for 256 images.
AT_SCALE: Mapping[str, Mapping[str, Any]] = {
    "simsiam": {"network.hidden": 2048, "network.dimension": 2048, "train.batch_size": 512, "train.lr": 0.03},
    "moco": {"train.batch_size": 512},
    "pcl": {"train.batch_size": 512},
    "cc": {"network.dimension": 128},
    "cc-psl": {"network.dimension": 128},
    "scan": {"heads.lr": 1e-4, "confident.by_cluster": False},
    "nnm": {"heads.lr": 1e-4},
    "temi": {"heads.lr": 1e-4, "network.momentum": 0.996},
    "spice": {"confident.by_cluster": False, "neighbours.count": 100},
    "deepcluster": {"train.schedule": "constant", "train.warmup": 0, "train.weight_decay": 1e-5},
    "dccm": {"network.dimension": 64, "train.batch_size": 32},
    "iic": {"train.lr": 1e-4},
    "pica": {"train.lr": 1e-4},
    "idfd": {
        "network.dimension": 128,
        "train.batch_size": 128,
        "train.lr": 0.06,
        "train.schedule": "steps",
        "train.milestones": (0.3, 0.475, 0.65, 0.825),
        "train.warmup": 0,
    },
    "tcl": {"network.dimension": 128, "train.lr": 1e-4},
    "gcc": {"network.dimension": 128, "train.lr": 0.4, "train.warmup": 0, "train.weight_decay": 1e-4},
    "swav": {
        "network.hidden": 2048,
        "network.dimension": 128,
        "train.optimiser": "lars",
        "train.lr": 0.3,
        "train.warmup": 10,
        "train.weight_decay": 1e-6,
    },
    "localagg": {
        "network.dimension": 128,
        "train.batch_size": 128,
        "train.lr": 0.06,
        "train.schedule": "steps",
        "train.milestones": (0.8, 0.95),
        "train.warmup": 0,
        "train.weight_decay": 1e-4,
        "train.decay_norms": False,
    },
    "secu": {
        "network.dimension": 128,
        "train.batch_size": 128,
        "balance.weight": 0.1,
        "train.lr": 0.4,
        "train.warmup": 11,
        "train.weight_decay": 1e-4,
    },
    "mice": {
        "network.dimension": 128,
        "network.momentum": 0.999,
        "queue.size": 16384,
        "train.lr": 1.0,
        "train.schedule": "steps",
        "train.milestones": (0.48, 0.64, 0.8),
        "train.warmup": 10,
    },
}


def for_method(config: Config, method: str, at_scale: bool, below: str | None = None) -> Config:
    """Return a recipe's settings as a method wants them; `below` is what it builds on, where that is not its usual.

    A method without a warm-up still scatters clusters only after as many epochs as the recipe's would take.
    What a recipe adds to ProPos is ProPos's alone. What learns first has the recipe as it wants it, without what a
    recipe adds at the end.
    """
    changes = {**OWN.get(method, {}), **(AT_SCALE.get(method, {}) if at_scale else {})}
    if "pretext.method" in changes:
        first = below or changes["pretext.method"]
        changes["pull.weight"] = 0.0
        return for_method(config, first, at_scale).with_settings({**changes, "pretext.method": first, "method": method})
    if "train.warmup" in changes:
        changes["psl.start"] = config.psl_start
    if method != "propos":
        changes |= {"contrast.weight": 0.0, "pull.weight": 0.0}
    return config.with_settings({**changes, "method": method, "pretext.method": None})


def on_top(config: Config, method: str) -> Config:
    """Return the settings of a finished run as a method wants them that goes on from its network."""
    own = OWN.get(method, {})
    if "pretext.method" not in own:
        return for_method(config, method, at_scale=False)
    below = {"pretext.method": config.pretext.method or config.method, "pretext.share": 0.0}
    return config.with_settings({**own, **below, "method": method})
