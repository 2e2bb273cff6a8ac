"""Each setting of a recipe beside what the paper says of it, and why where the two differ.

Of what the paper does not say there is the value of those it follows; every setting is in one of the tables below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from propos.config import Config
from propos.recipes.table import PAPER, SYSTEMS

PERSONAL = ("source", "data", "labels", "recipe", "method", "clusters", "seed", "keep_epochs", "suggest.", "pixels.")


@dataclass(frozen=True)
class Said:
    """A value the paper gives, and the sentence, table or section that gives it; or one from elsewhere."""

    value: Any
    where: str
    paper: bool = True  # whether it is the paper that says so


@dataclass(frozen=True)
class Row:
    """A setting, what is said of it, and why it differs."""

    key: str
    ours: Any
    said: Said | None
    note: str | None  # why it differs; where nothing is said of it, what it is

    @property
    def differs(self) -> bool:
        """Whether another value is said."""
        return self.said is not None and self.said.value != self.ours


_SIMCLR = "“the same data augmentations as SimCLR, including ResizedCrop, ColorJitter, Grayscale, and HorizontalFlip”"
_MOCO_V2 = "“For MoCo v2, the queue size, temperature for InfoNCE loss, weight decay were 4,096, 1.0, and 1.0×10⁻⁴”"
_PCL = "“we set the loss weight of ProtoNCE to 0.01 and the number of clusters to {250, 500, 1000}”"

SAID: Mapping[str, Said] = {
    "views.turns": Said(1, _SIMCLR),
    "views.rotation": Said(0.0, _SIMCLR),
    "views.blur": Said((0.0, 0.0), "“We have removed GaussianBlur”"),
    "views.solarise": Said((0.0, 0.0), _SIMCLR),
    "network.width": Said(1.0, "“the standard ResNet backbones”"),
    "network.hidden": Said(4096, "“the projection dimension and hidden size were 256 and 4096 for both two networks”"),
    "network.dimension": Said(256, "“the projection dimension and hidden size were 256 and 4096”"),
    "network.momentum": Said(0.996, "“we set it to 0.996 for both BYOL and ProPos”"),
    "network.momentum_schedule": Said("constant", "“we set it to 0.996 for both BYOL and ProPos”"),
    "network.bn_groups": Said(4, "“trained on 4 NVIDIA V100 GPUs”, “We have not employed SyncBN”"),
    "network.shuffle_bn": Said(True, "“Instead, we adopt the shufflingBN in MoCo”"),
    "contrast.weight": Said(0.0, "Eq. 15: its loss is ℓ_psa + λ_psl ℓ_psl"),
    "pull.weight": Said(0.0, "Eq. 15: its loss is ℓ_psa + λ_psl ℓ_psl"),
    "psa.sigma": Said(0.001, "“τ, λ_psl …, and σ for positive sampling were set as 0.5, 0.1, and 0.001”"),
    "psl.weight": Said(0.1, "“τ, λ_psl …, and σ for positive sampling were set as 0.5, 0.1, and 0.001”"),
    "psl.temperature": Said(0.5, "“τ, λ_psl …, and σ for positive sampling were set as 0.5, 0.1, and 0.001”"),
    "psl.start": Said(None, "“PSL will be involved in training after the finish of the learning rate warmup”"),
    "queue.size": Said(0, "“we use the representations within mini-batch”"),
    "pcl.weight": Said(0.01, _PCL),
    "pcl.clusters": Said((250, 500, 1000), _PCL),
    "estep.embeddings": Said("fresh", "“spherical k-means … on the features extracted from the target network”"),
    "estep.every": Said(1, "“k-means clustering is performed in the E-step at the beginning of each epoch”"),
    "estep.averaged": Said(0, "“with k-means++ initialization”, of the images themselves"),
    "estep.restarts": Said(10, "“k-means clustering with 10 different initialization”"),
    "train.epochs": Said(1000, "“We train all methods with 1,000 epochs”"),
    "train.batch_size": Said(256, "“The mini-batch size was 512 for MoCo and 256 for the remaining methods”"),
    "train.balanced": Said(False, "Algorithm 1: “Randomly sample a mini-batch”"),
    "train.optimiser": Said("sgd", "“the stochastic gradient descent (SGD) optimizer”"),
    "train.lr": Said(0.05, "“The base learning rate for MoCo v2, BYOL, and ProPos were 0.05”, for 256 images"),
    "train.schedule": Said("cosine", "“the cosine decay learning rate schedule”"),
    "train.warmup": Said(50, "“with 50 epochs for learning rate warmup”"),
    "train.predictor_rate": Said(10.0, "“the learning rates for predictor networks … are 10×”"),
}


def _elsewhere(where: str, **values: Any) -> dict[str, Said]:
    """Return values that are not the paper's; a key's dot is written as two underscores."""
    return {key.replace("__", "."): Said(value, where, paper=False) for key, value in values.items()}


_FOR_CIFAR = "SimCLR's and the released code's for CIFAR"
ELSEWHERE: Mapping[str, Said] = {
    **_elsewhere("SimCLR's", views__crop_scale=(0.08, 1.0), views__crop_ratio=(0.75, 4 / 3)),
    **_elsewhere("SimCLR's", views__flip=0.5, views__jitter=0.8, views__grey=0.2),
    **_elsewhere(_FOR_CIFAR, views__brightness=0.4, views__contrast=0.4),
    **_elsewhere(_FOR_CIFAR, views__saturation=0.4, views__hue=0.1),
    **_elsewhere("as torchvision's ColorJitter, with which the released code makes them", views__colours="in-turn"),
    **_elsewhere("nothing is pretrained", start__network=None, start__weights=None, start__sha256=None),
    **_elsewhere("nothing is pretrained", start__learns="nothing", start__norms="kept"),
    **_elsewhere("as released for CIFAR-10; CIFAR-20's has both views in one pass", network__joint_views=False),
    **_elsewhere("SimCLR's and CC's; ProPos has none", contrast__temperature=0.5),
    **_elsewhere("CC's; ProPos has none", contrast__cluster_temperature=1.0),
    **_elsewhere("of recipes for small grey images; ProPos has none", pull__share=0.25),
    **_elsewhere("MoCo's, to whose mean concentrations are scaled", pcl__temperature=1.0),
    **_elsewhere("as released for CIFAR", train__weight_decay=5e-4, train__sgd_momentum=0.9, train__decay_norms=True),
    **_elsewhere("a step for each mini-batch, as in Algorithm 1", train__accumulate=1),
}
# Of no moment for what is learnt.
OURS: Mapping[str, str] = {
    "views.preset": "a name for the views below",
    "network.components": "of pretrained features alone",
    "network.whitening": "of pretrained features alone",
    **dict.fromkeys(("strong.operations", "strong.cutout"), "of stages with strong views alone"),
    **dict.fromkeys(("pretext.method", "pretext.share"), "of methods that build on another alone"),
    **dict.fromkeys(("heads.count", "heads.lr", "neighbours.count"), "of methods with cluster heads of a later stage"),
    **dict.fromkeys(
        ("balance.weight", "confident.above", "confident.by_cluster"), "of methods with cluster heads of a later stage"
    ),
    **dict.fromkeys(
        ("bank.momentum", "decorrelation.weight", "decorrelation.temperature"), "of IDFD and LocalAgg alone"
    ),
    "overclustering.times": "of DeepCluster, SwAV, IIC, PICA, SeCu and LocalAgg alone",
    "train.milestones": "of the schedule of steps alone",
    "train.precision": "of the backbone; on a GPU half precision unless told otherwise",
    **dict.fromkeys(("train.deterministic", "train.compile", "train.recompute"), "how it is computed, not what"),
    **dict.fromkeys(("train.checkpoint_epochs", "train.checkpoint_minutes"), "when it is kept, not what"),
    "log.tensorboard": "who watches, not what is learnt",
}

# What the paper says of some data sets, or of the experiment a recipe is for.
_SHAPES = "photographs keep their shape, so that crops are cut from more pixels than a view has"
_WHOLE = {
    **_elsewhere(_SHAPES, views__keep="shapes"),
    **_elsewhere("as released: resized to the square", views__plain="whole"),
}
_CENTRE = {
    **_WHOLE,
    **_elsewhere("as released: shorter side 256 and the middle 224", views__plain="centre"),
}
_SMALL_IMAGES = {
    **_elsewhere("the images are squares of the views' size", views__keep="squares", views__plain="whole"),
    "views.size": Said(32, "table 1: 32×32"),
    "network.stem": Said(
        "small", "“a convolution layer of kernel size 3×3 and stride 1, and remove the first max-pooling”"
    ),
}
_R18 = {"network.backbone": Said("resnet18", "“Unless noted otherwise, we use ResNet-18”")}
_R34 = {
    "network.backbone": Said(
        "resnet34", "“ResNet-34 … to report the main results on moderate-scale benchmark datasets”"
    )
}
_R50 = {"network.backbone": Said("resnet50", "“ResNet-50 on ImageNet-1k”")}
_STEM = {"network.stem": Said("imagenet", "the first convolution is replaced “on CIFAR-10 and CIFAR-100” alone")}
_AT_96 = {"views.size": Said(96, "table 1: 96×96"), **_STEM, **_WHOLE}
_AT_224 = {"views.size": Said(224, "table 1: 224×224"), **_STEM, **_CENTRE}
_TABLE_S1 = {"views.size": Said(224, "table s1: “an original image size (224)”"), **_STEM, **_CENTRE, **_R34}
_TINY = {"network.backbone": Said("resnet18", "“ResNet-18 on Tiny-ImageNet”"), **_AT_224}
_IMAGENET_1K = {**_R50, **_AT_224, "train.epochs": Said(200, "“we trained a ResNet-50 for 200 epochs”")}
_TABLE_8 = {
    "network.backbone": Said("resnet50", "“trained ProPos with ResNet-50 for 300 epochs”"),
    "train.epochs": Said(300, "“trained ProPos with ResNet-50 for 300 epochs”"),
    **_elsewhere("SCAN's, whose settings the paper follows there", views__size=224),
    **_STEM,
    **_CENTRE,
}

ROWS: Mapping[str, Mapping[str, Said]] = {
    "paper-32": {**_SMALL_IMAGES, **_R18},
    "paper-96": {**_AT_96, **_R34},
    "cifar-10": {**_SMALL_IMAGES, **_R34},
    "cifar-20": {**_SMALL_IMAGES, **_R34},
    "cifar-10-r18": {**_SMALL_IMAGES, **_R18},
    "cifar-20-r18": {**_SMALL_IMAGES, **_R18},
    "stl-10": {**_AT_96, **_R34},
    "imagenet-10": {**_AT_96, **_R34},
    "imagenet-dogs": {**_AT_96, **_R34},
    "imagenet-10-224": _TABLE_S1,
    "imagenet-dogs-224": _TABLE_S1,
    "tiny-imagenet": _TINY,
    "tiny-imagenet-queue": {**_TINY, "train.epochs": Said(200, "“the same settings … except for 200 epochs”")},
    "imagenet-1k": _IMAGENET_1K,
    "imagenet-50": _TABLE_8,
    "imagenet-100": _TABLE_8,
    "imagenet-200": _TABLE_8,
    "cifar-10-lt": {**_SMALL_IMAGES, **_R18},
    "cifar-20-lt": {**_SMALL_IMAGES, **_R18},
    "cifar-10-r18-released": {**_SMALL_IMAGES, **_R18},
    "cifar-20-r18-released": {**_SMALL_IMAGES, **_R18},
    "cifar-20-r34-released": {**_SMALL_IMAGES, **_R34},
    "byol-released": {**_SMALL_IMAGES, **_R18},
    "imagenet-dogs-released": _TABLE_S1,
    "imagenet-1k-released": _IMAGENET_1K,
}

# What the paper says of other methods than its own.
_MOCO = {
    "network.momentum": Said(0.99, "“0.99 for MoCo v2”"),
    "queue.size": Said(4096, _MOCO_V2),
    "contrast.temperature": Said(1.0, _MOCO_V2),
    "train.weight_decay": Said(1e-4, _MOCO_V2),
    "train.batch_size": Said(512, "“The mini-batch size was 512 for MoCo”; PCL “under the fair conditions of MoCo”"),
}
OF_METHODS: Mapping[str, Mapping[str, Said]] = {
    "moco": _MOCO,
    "pcl": _MOCO,
    "spice": _MOCO,  # which learns the images first
}

# Why a setting is not the paper's.
_CODE = "as in the authors' released code"
_FOUR = "their gather passes 1/4 of the gradient on four processes, so that 0.1 acts as 0.025"
_RELEASED = {
    "psl.weight": _FOUR,
    "train.schedule": f"{_CODE}: the cosine is as long as all epochs and starts after the warm-up",
}
_RELEASED_CIFAR_20 = {
    **_RELEASED,
    **dict.fromkeys(("network.momentum_schedule", "network.joint_views", "train.balanced"), _CODE),
}
DIFFERENCES: Mapping[str, Mapping[str, str]] = {
    "tiny-imagenet-queue": {"queue.size": "the figure is of queues of several sizes; this is one (--set queue.size=…)"},
    "imagenet-1k": {"train.warmup": f"{_CODE}: the paper does not say how long it is in 200 epochs"},
    "cifar-10-r18-released": {**_RELEASED, "train.batch_size": _CODE},
    "cifar-20-r18-released": _RELEASED_CIFAR_20,
    "cifar-20-r34-released": {**_RELEASED_CIFAR_20, "train.schedule": f"{_CODE}, which has one for this network alone"},
    "byol-released": {
        "network.momentum_schedule": _CODE,
        "estep.every": f"{_CODE}: clusters of BYOL only score",
        "train.batch_size": _CODE,
        "train.schedule": _RELEASED["train.schedule"],
    },
    "imagenet-dogs-released": {**_RELEASED_CIFAR_20, "views.blur": _CODE},
    "imagenet-1k-released": {
        **dict.fromkeys(("views.blur", "views.solarise", "network.momentum", "network.momentum_schedule"), _CODE),
        **dict.fromkeys(("psa.sigma", "queue.size", "estep.every", "train.optimiser", "train.lr"), _CODE),
        **dict.fromkeys(("train.warmup", "train.predictor_rate", "train.weight_decay", "train.decay_norms"), _CODE),
        "views.saturation": _CODE,
        "train.accumulate": f"{_CODE}: sixteen of 256 images are the 4,096 of a step",
        "network.bn_groups": f"{_CODE}, which has SyncBN there",
        "network.shuffle_bn": f"{_CODE}, which has SyncBN there",
        "psl.weight": "as released: 0.001, of whose gradient 1/8 is passed on eight processes",
        "train.schedule": _RELEASED["train.schedule"],
    },
}
_NO_TARGET = "it has no target encoder to shuffle the batch of"
_CC = "“For CC, we used their official code”, which has this"
_AUTHORS = "the paper trains no such system; its authors' released code has this"
_ALONE = "the paper trains no such system; its authors' code runs on one device"
OF_METHODS_DIFFERENCES: Mapping[str, Mapping[str, str]] = {
    "simsiam": {
        "network.hidden": "the width of SimSiam's own heads",
        "network.dimension": "the width of SimSiam's own heads",
        "network.shuffle_bn": _NO_TARGET,
        "train.batch_size": "the released settings of SimSiam",
        "train.lr": "SimSiam's 0.06 for its 512 images; the paper gives no rate for it",
    },
    "simclr": {
        "network.bn_groups": "the paper trains no SimCLR; its own code has SyncBN",
        "network.shuffle_bn": _NO_TARGET,
    },
    "scan": {
        "network.bn_groups": "the paper trains no SCAN; its code has one device",
        "network.shuffle_bn": _NO_TARGET,
    },
    "nnm": {
        "network.bn_groups": "the paper trains no NNM; its code normalises on each device",
        "network.shuffle_bn": _NO_TARGET,
    },
    "temi": {
        "network.bn_groups": "the heads it trains have no batch norm",
        "network.shuffle_bn": _NO_TARGET,
    },
    **{
        method: {
            **dict.fromkeys(("train.optimiser", "train.lr", "train.schedule", "train.warmup"), _CC),
            "train.weight_decay": _CC,
            "network.dimension": _CC,
            "network.bn_groups": "CC's code runs on one device",
            "network.shuffle_bn": _NO_TARGET,
            "psl.start": "there is no warm-up, so the start is as many epochs as the paper's would take",
        }
        for method in ("cc", "cc-psl")
    },
    **{
        method: {
            **dict.fromkeys(("train.schedule", "train.warmup", "train.weight_decay"), _AUTHORS),
            **dict.fromkeys(("train.optimiser", "train.lr"), "the paper trains no such system; IDEC's code has this"),
            "contrast.cluster_temperature": "of distances on the sphere; its authors' embeddings lie on none",
            "network.bn_groups": _ALONE,
            "network.shuffle_bn": _NO_TARGET,
            "psl.start": "there is no warm-up, and nothing is scattered",
        }
        for method in ("dec", "idec")
    },
    "dccm": {
        **dict.fromkeys(("train.batch_size", "train.weight_decay", "network.dimension"), _AUTHORS),
        **dict.fromkeys(("train.schedule", "train.warmup"), _AUTHORS),
        "train.lr": "for 256 images; of its authors there are rates for CIFAR-10 and CIFAR-20 alone",
        "train.optimiser": "the paper trains no such system; its authors' code has RMSprop",
        "network.bn_groups": _ALONE,
        "network.shuffle_bn": _NO_TARGET,
        "psl.start": "there is no warm-up, and nothing is scattered",
    },
    "deepcluster": {
        **dict.fromkeys(("train.schedule", "train.warmup", "train.weight_decay"), _AUTHORS),
        "network.bn_groups": _ALONE,
        "network.shuffle_bn": _NO_TARGET,
        "psl.start": "there is no warm-up, and nothing is scattered",
    },
    **{
        method: {
            **dict.fromkeys(("train.optimiser", "train.lr", "train.schedule", "train.warmup"), _AUTHORS),
            "train.weight_decay": _AUTHORS,
            "network.bn_groups": _ALONE,
            "network.shuffle_bn": _NO_TARGET,
            "psl.start": "there is no warm-up, and nothing is scattered",
        }
        for method in ("iic", "pica")
    },
    "swav": {
        **dict.fromkeys(("train.optimiser", "train.lr", "train.warmup", "train.weight_decay"), _AUTHORS),
        **dict.fromkeys(("network.hidden", "network.dimension", "contrast.temperature"), _AUTHORS),
        "network.bn_groups": "the paper trains no such system; its authors' code has SyncBN",
        "network.shuffle_bn": _NO_TARGET,
        "psl.start": "nothing is scattered",
    },
    "gcc": {
        **dict.fromkeys(("train.lr", "train.warmup", "train.weight_decay"), _AUTHORS),
        **dict.fromkeys(("network.dimension", "contrast.temperature"), _AUTHORS),
        "network.bn_groups": _ALONE,
        "network.shuffle_bn": _NO_TARGET,
        "psl.start": "there is no warm-up, and nothing is scattered",
    },
    "tcl": {
        **dict.fromkeys(("train.optimiser", "train.lr", "train.schedule", "train.warmup"), _AUTHORS),
        **dict.fromkeys(("train.weight_decay", "network.dimension"), _AUTHORS),
        "network.bn_groups": "the paper trains no such system; its authors' code normalises on each device",
        "network.shuffle_bn": _NO_TARGET,
        "psl.start": "there is no warm-up, and nothing is scattered",
    },
    "idfd": {
        **dict.fromkeys(("train.schedule", "train.warmup", "train.batch_size", "train.lr"), _AUTHORS),
        "network.dimension": _AUTHORS,
        "contrast.temperature": _AUTHORS,
        "network.bn_groups": _ALONE,
        "network.shuffle_bn": _NO_TARGET,
        "psl.start": "there is no warm-up, and nothing is scattered",
    },
    "localagg": {
        **dict.fromkeys(("train.schedule", "train.warmup", "train.batch_size", "train.lr"), _AUTHORS),
        **dict.fromkeys(("train.weight_decay", "train.decay_norms", "network.dimension"), _AUTHORS),
        "contrast.temperature": _AUTHORS,
        "network.bn_groups": "the paper trains no such system",
        "network.shuffle_bn": _NO_TARGET,
        "psl.start": "there is no warm-up, and nothing is scattered",
    },
    "secu": {
        **dict.fromkeys(("train.warmup", "train.batch_size", "train.lr", "train.weight_decay"), _AUTHORS),
        **dict.fromkeys(("network.dimension", "contrast.temperature", "contrast.cluster_temperature"), _AUTHORS),
        "network.bn_groups": "the paper trains no such system; its authors' code has SyncBN",
        "network.shuffle_bn": _NO_TARGET,
        "psl.start": "as many epochs as the paper's warm-up would take; nothing is scattered",
    },
    "mice": {
        **dict.fromkeys(("train.schedule", "train.warmup", "train.lr", "train.weight_decay"), _AUTHORS),
        **dict.fromkeys(("network.dimension", "network.momentum", "queue.size", "contrast.temperature"), _AUTHORS),
        "network.bn_groups": _ALONE,
        "network.shuffle_bn": "one device normalises the whole batch, in any order",
        "psl.start": "as many epochs as the paper's warm-up would take; nothing is scattered",
    },
}
_SMALL = "for one machine without a GPU (docs/results.md)"
_SYSTEM = "as those who published the method have it"


def against_paper(name: str, config: Config) -> list[Row]:
    """Return every setting of a recipe, as a method wants it, beside what the paper says."""
    said = {**ELSEWHERE, **SAID, **ROWS.get(name, {}), **OF_METHODS.get(config.method, {})}
    why = {**DIFFERENCES.get(name, {}), **OF_METHODS_DIFFERENCES.get(config.method, {})}
    rows = []
    for key, ours in config.flat().items():
        if key.startswith(PERSONAL):
            continue
        row = Row(key, ours, said.get(key), OURS.get(key))
        if row.differs:
            otherwise = None if name in PAPER else _SYSTEM if name in SYSTEMS else _SMALL
            row = Row(key, ours, row.said, why.get(key, otherwise))
        rows.append(row)
    return rows
