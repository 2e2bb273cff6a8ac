"""The catalogue: what each table and figure of the paper shows, and which cells it is made of."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from propos.common.errors import InputError
from propos.config import method_names
from propos.runner.recipes import RECIPES
from propos.study.reproduce.cells import Cell, Changes, Setup, with_seeds
from propos.study.reproduce.paper import methods_in, paper

# Sets by the paper's names, in its order.
NAMES = {
    "cifar-10": "CIFAR-10",
    "cifar-20": "CIFAR-20",
    "stl-10": "STL-10",
    "imagenet-10": "ImageNet-10",
    "imagenet-dogs": "ImageNet-Dogs",
    "tiny-imagenet": "Tiny-ImageNet",
    "imagenet-1k": "ImageNet-1k",
    "imagenet-50": "ImageNet-50",
    "imagenet-100": "ImageNet-100",
    "imagenet-200": "ImageNet-200",
    "cifar-10-lt": "CIFAR-10-LT",
    "cifar-20-lt": "CIFAR-20-LT",
    "fashion-mnist": "Fashion-MNIST",  # which the paper does not have
}
# Methods by the names that table 6 has for them.
ABLATION = {
    "CC": "cc",
    "CC + PSL": "cc-psl",
    "PCL": "pcl",
    "BYOL": "byol",
    "BYOL + CC": "byol-cc",
    "BYOL + PCL": "byol-pcl",
    "ProPos": "propos",
    "ProPos w/o PSL": "propos-no-psl",
    "ProPos w/o PSA": "propos-no-psa",
    "ProPos w/o PSL-uniformity": "propos-alignment-only",
    "ProPos w/o PSL-alignment": "propos-uniformity-only",
}
# The two losses, each alone and both: what the study of two sets compares.
LOSSES = ("BYOL", "ProPos w/o PSL", "ProPos w/o PSA", "ProPos")
USUAL_EPOCHS = "200"  # of table 5, and of the recipe for ImageNet-1k
UNSTATED = "-"  # of rows of table 5 whose epochs the paper does not give; here they are the usual ones
# Rows of the other tables whose method has another name here; "NMM" is a misprint of NNM.
ALIASES = {"NMM": "nnm", "MoCo v2": "moco", "Rotation": "rotnet"}
TABLE_8 = {
    "k-means w/ pre-trained MoCo": "moco",
    "SCAN after clustering step": "scan",
    "SCAN after self-labeling step": "scan",
    "ProPos": "propos",
}
TABLE_9 = {"MoCo v2": "moco", "BYOL": "byol", "ProPos w/o PSL": "propos-no-psl", "ProPos": "propos"}

CIFAR = ("cifar-10", "cifar-20")
SUBSETS = ("imagenet-50", "imagenet-100", "imagenet-200")
CLASSES = {"cifar-10": 10, "cifar-20": 20}
NUMBERS_OF_CLUSTERS = (5, 10, 20, 30, 40, 50)
EVERY = (1, 2, 4, 8)
SIGMAS = (0.0, 1e-4, 1e-3, 5e-3, 1e-2, 1e-1)
LAMBDAS = (0.0, 0.01, 0.05, 0.1, 0.5, 1.0)
WIDTHS = (64, 128, 256, 512)
BACKBONES = ("resnet18", "resnet34", "resnet50")
QUEUES = (0, 256, 1024, 2048, 4096)
# The paper removes "some data augmentations" and does not say which; these are ours, cumulative.
AUGMENTATIONS: dict[str, dict[str, Any]] = {
    "all": {},
    "no grey": {"views.grey": 0.0},
    "no colour": {"views.grey": 0.0, "views.jitter": 0.0},
    "crops alone": {"views.grey": 0.0, "views.jitter": 0.0, "views.flip": 0.0},
}


def varied(data: str, method: str = "propos", **changes: Any) -> Setup:
    """Return a set-up of the ablations on CIFAR, ResNet-18, with some settings changed; dots are double underscores.

    What is the recipe's own value is no change, and a loss or a noise of nothing is the method without it, so that
    items share these cells.
    """
    kept = {key.replace("__", "."): value for key, value in changes.items()}
    usual = {
        "propos.sigma": 1e-3,
        "propos.psl_weight": 0.1,
        "estep.every": 1,
        "network.dimension": 256,
        "network.backbone": "resnet18",
        "clusters": CLASSES.get(data),
    }
    kept = {key: value for key, value in kept.items() if usual.get(key) != value}
    if method == "propos" and kept.get("propos.sigma") == 0:
        kept.pop("propos.sigma")
        method = "propos-no-psa"
    if method == "propos" and kept.get("propos.psl_weight") == 0:
        kept.pop("propos.psl_weight")
        method = "propos-no-psl"
    return Setup(data, f"{data}-r18", method, tuple(sorted(kept.items())))


def methods_run(table: str) -> dict[str, str]:
    """Return the methods of a table that exist here, by the table's names; its other rows are quoted."""
    named = {row: ALIASES.get(row, row.lower()) for row in methods_in(table)}
    return {row: method for row, method in named.items() if method in method_names()}


def compared(data: str, method: str) -> Setup:
    """Return a method on a set, with its own recipe for the set where there is one, else with the paper's.

    LocalAgg's for ImageNet-1k is of another network than the paper's table.
    """
    own = f"{method}-{data}"
    return Setup(data, own if own in RECIPES and own != "localagg-imagenet-1k" else data, method)


def probed_setups() -> dict[tuple[str, str], Setup]:
    """Return what table 5 probes, by method and number of epochs: all with ResNet-50."""
    run, found = methods_run("table-5"), {}
    run |= {"MoCo": "moco-v1"}
    for row in paper()["table-5"]:
        if row["method"] in run:
            usual = row["epochs"] in (USUAL_EPOCHS, UNSTATED)
            changes: Changes = () if usual else (("train.epochs", int(row["epochs"])),)
            setup = compared("imagenet-1k", run[row["method"]])
            found[row["method"], row["epochs"]] = replace(setup, changes=changes)
    return found


def _on(sets: Iterable[str], methods: Iterable[str], recipe: str = "{}") -> tuple[Setup, ...]:
    return tuple(Setup(data, recipe.format(data), method) for data in sets for method in methods)


def ablation(methods: Iterable[str], sets: Sequence[str] = CIFAR) -> tuple[Setup, ...]:
    """Return methods on CIFAR with ResNet-18."""
    return _on(sets, methods, "{}-r18")


def sweep(key: str, values: Iterable[Any], methods: Sequence[str] = ("propos",)) -> tuple[Setup, ...]:
    """Return a setting's values on both CIFAR sets."""
    return tuple(varied(data, method, **{key: value}) for data in CIFAR for method in methods for value in values)


def losses() -> tuple[Setup, ...]:
    """Return what compares the two losses, on Fashion-MNIST with the settings of CIFAR-10."""
    return _on(("cifar-10", "fashion-mnist"), [ABLATION[name] for name in LOSSES], "cifar-10-r18")


def split_and_size() -> dict[str, dict[str, Setup]]:
    """Return the rows of table s1: set-ups by column."""
    return {
        "Baseline (train+test)": {NAMES[data]: Setup(data, data) for data in CIFAR},
        "Exclude test set": {NAMES[data]: Setup(f"{data}:train", data) for data in CIFAR},
        "Baseline (96)": {NAMES[data]: Setup(data, data) for data in ("imagenet-10", "imagenet-dogs")},
        "Large image size (224)": {
            NAMES[data]: Setup(data, f"{data}-224") for data in ("imagenet-10", "imagenet-dogs")
        },
    }


def queues() -> tuple[Setup, ...]:
    """Return Tiny-ImageNet with queues of several sizes."""
    return tuple(
        Setup("tiny-imagenet", "tiny-imagenet-queue", changes=() if size == 1024 else (("propos.queue_size", size),))
        for size in QUEUES
    )


def timed_setups() -> dict[str, tuple[Setup, Setup]]:
    """Return what table 7 times, by set: BYOL and ProPos with ResNet-50."""
    sets = ("cifar-10", "cifar-20", "stl-10", "imagenet-10", "imagenet-dogs", "tiny-imagenet")
    deep = (("network.backbone", "resnet50"),)
    return {data: (Setup(data, data, "byol", deep), Setup(data, data, "propos", deep)) for data in sets}


@dataclass(frozen=True)
class Item:
    """A table or figure: what it shows, and the set-ups whose cells it is made of."""

    id: str
    shows: str
    setups: tuple[Setup, ...] = ()
    most_seeds: int | None = None  # a figure of a single run needs one
    in_paper: bool = True

    def cells(self, seeds: int) -> list[Cell]:
        """Return its cells, each once."""
        return with_seeds(self.setups, seeds if self.most_seeds is None else min(seeds, self.most_seeds))


def _items() -> Iterable[Item]:
    five = ("cifar-10", "cifar-20", "stl-10", "imagenet-10", "imagenet-dogs")
    both, one = ("byol", "propos"), ("cifar-10",)
    yield Item("table-1", "the data sets on this machine, next to the paper's counts")
    table_2 = tuple(compared(data, method) for data in five for method in methods_run("table-2").values())
    yield Item("table-2", "clustering of five sets, ResNet-34", table_2)
    yield Item("table-3", "Tiny-ImageNet", _on(["tiny-imagenet"], methods_run("table-3").values()))
    table_4 = tuple(compared("imagenet-1k", method) for method in methods_run("table-4").values())
    yield Item("table-4", "ImageNet-1k, AMI, K = 1,000 and 25 a class", table_4)
    yield Item("table-5", "ImageNet-1k, linear probe", tuple(dict.fromkeys(probed_setups().values())))
    yield Item("table-6", "the ablation: 11 methods, ResNet-18", ablation(ABLATION.values()))
    yield Item("table-7", "seconds per epoch, BYOL and ProPos (r = 1) alternately in one process")
    yield Item("table-8", "subsets of ImageNet, validation images", _on(SUBSETS, dict.fromkeys(TABLE_8.values())))
    yield Item("table-9", "long-tailed CIFAR", _on(["cifar-10-lt", "cifar-20-lt"], TABLE_9.values()))
    s1 = tuple(setup for row in split_and_size().values() for setup in row.values())
    yield Item("table-s1", "without the test split; images of 224 px", s1)
    yield Item("figure-3", "uniformity, imbalance, cluster sizes and NMI over training", ablation(both, one))
    yield Item("figure-4", "how often sampled neighbours keep their class", ablation(["propos"], one), 1)
    maps = ("byol", "propos-no-psl", "propos-no-psa", "propos")
    yield Item("figure-5", "t-SNE of the ablation", ablation(maps, one), 1)
    numbers = sweep("clusters", NUMBERS_OF_CLUSTERS)
    yield Item("figure-6", "K from 5 to 50; BYOL clustered again", (*numbers, *ablation(["byol"])))
    yield Item("figure-7a", "how often k-means is performed, r", sweep("estep__every", EVERY))
    yield Item("figure-7b", "σ of positive sampling", sweep("propos__sigma", SIGMAS))
    yield Item("figure-7c", "λ of prototype scattering", sweep("propos__psl_weight", LAMBDAS))
    yield Item("figure-7d", "the width of the projection", sweep("network__dimension", WIDTHS, both))
    yield Item("figure-7e", "the backbone", sweep("network__backbone", BACKBONES, both))
    changed = tuple(
        varied(data, method, **changes) for data in CIFAR for method in both for changes in AUGMENTATIONS.values()
    )
    yield Item("figure-7f", "views without some of the augmentations", changed)
    yield Item("figure-8", "the size of the queue, Tiny-ImageNet", queues())
    yield Item("figure-s1", "PCL on MoCo and on BYOL over training", ablation(["pcl", "byol-pcl"], one))
    yield Item("figure-s2", "t-SNE at four moments of training", ablation(["propos"], one), 1)
    yield Item("figure-s3", "outliers on the t-SNE", ablation(["propos"], one), 1)
    yield Item("figure-s4", "t-SNE with too few clusters, K = 5", (varied("cifar-10", clusters=5),), 1)
    yield Item("study", "the two losses on CIFAR-10 and Fashion-MNIST, which are small", losses(), in_paper=False)


ITEMS = {item.id: item for item in _items()}
# Ids by which an item was once known, and figures of the paper without data.
ELSEWHERE = {
    "figure-1": "the paper's Fig. 1 illustrates the losses and has no data",
    "figure-2": "the paper's Fig. 2 is a diagram of the method; uniformity and imbalance over training are figure-3",
    **{f"figure-6{part}": f"the paper's Fig. 6 has no parts; this is figure-7{part}" for part in "abcdef"},
}


def find_items(ids: Sequence[str]) -> list[Item]:
    """Return the items with these ids, once each; `all` is every item of the paper, `figure-7` all its parts."""
    found: dict[str, Item] = {}
    for name in ids:
        these = [each for each, item in ITEMS.items() if (item.in_paper if name == "all" else _is_of(each, name))]
        if not these:
            raise InputError(f'unknown item "{name}": {_hint(name)}')
        found |= {each: ITEMS[each] for each in these}
    return list(found.values())


def _hint(name: str) -> str:
    """Return what to ask for in place of an unknown item."""
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    near = difflib.get_close_matches(name, ITEMS, n=1)
    return f"did you mean {near[0]}?" if near else "`propos reproduce` lists them"


def _is_of(item: str, name: str) -> bool:
    """Return whether an item has this id, or is a lettered part of it."""
    return item == name or (item.startswith(name) and item.removeprefix(name) in set("abcdef") and name[-1].isdigit())
