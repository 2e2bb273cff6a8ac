"""The method of a run in plain words, for its first line and its report page."""

from __future__ import annotations

from propos.config.methods import method_modules
from propos.config.tree import Config

# Names that are not simply in capitals.
TITLES = {
    "propos": "ProPos",
    "propos-alignment-only": "ProPos, prototypes aligned only",
    "propos-uniformity-only": "ProPos, prototypes pushed apart only",
    "propos-no-psa": "ProPos without PSA",
    "propos-no-psl": "ProPos without PSL",
    "byol-cc": "BYOL + CC",
    "byol-pcl": "BYOL + PCL",
    "cc-psl": "CC + PSL",
    "conr": "CoNR",
    "dcboost": "DCBoost",
    "deepcluster": "DeepCluster",
    "localagg": "LocalAgg",
    "mice": "MiCE",
    "moco": "MoCo",
    "secu": "SeCu",
    "simclr": "SimCLR",
    "simsiam": "SimSiam",
    "swav": "SwAV",
    "kmeans-features": "k-means",
    "kmeans-pixels": "k-means on pixels",
    "kmeans-random": "k-means on an untrained network's embeddings",
}
NETWORKS = {"efficientnet-lite": "EfficientNet-Lite", "resnet": "ResNet-"}
ADDED = {"contrast_weight": "contrast", "pull_weight": "pull"}  # losses that ProPos's paper does not have


def method_in_words(config: Config) -> str:
    """Return what ran: the method, losses added to the paper's, and what it builds on.

    Examples: "k-means on EfficientNet-Lite0 features", "ProPos + contrast", "SCAN on SimCLR".
    """
    return _method_in_words(config, config.method)


def _method_in_words(config: Config, method: str) -> str:
    own = config.sections.get(method, {})
    added = [words for key, words in ADDED.items() if method.startswith("propos") and own.get(key)]
    words = " + ".join([_title(method), *added])
    network = config.start.network
    pretext = own.get("pretext")
    if pretext and not (network and method == "temi"):  # TEMI on a pretrained network's features has no pretext
        below = _method_in_words(config, str(pretext))
        return f"{words} on {below.removeprefix('k-means on ') if network else below}"
    if network is None:
        return words
    if config.start.learns == "nothing":
        return f"{words} on {_network(network)} features"
    return f"{words}, training {_network(network)}{_last(config)}"


def _last(config: Config) -> str:
    return "'s last stage" if config.start.learns == "last" else ""


def _title(method: str) -> str:
    return TITLES.get(method, method.upper() if method in method_modules() else method)


def _network(name: str) -> str:
    for prefix, words in NETWORKS.items():
        if name.startswith(prefix):
            return words + name.removeprefix(prefix)
    return name
