"""Comparison of each setting of a recipe with the paper's value, and the reason if they differ.

If the paper gives no value, that of the work it follows is used. Every setting is in one of the tables below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from propos.config import Config
from propos.runner.recipes.systems import SYSTEMS
from propos.runner.recipes.table import PAPER

PERSONAL = ("source", "data", "labels", "recipe", "method", "clusters", "seed", "keep_epochs", "suggest.", "pixels.")


@dataclass(frozen=True)
class Reference:
    """A value that the paper gives, and the sentence, table or section that gives it; or one from elsewhere."""

    value: Any
    where: str
    paper: bool = True  # whether it is the paper's


@dataclass(frozen=True)
class Row:
    """A setting, its reference, and the reason if it differs."""

    key: str
    ours: Any
    reference: Reference | None
    note: str | None  # why it differs; without a reference, what it is

    @property
    def differs(self) -> bool:
        """True if the reference has another value."""
        return self.reference is not None and self.reference.value != self.ours


_SIMCLR = "“the same data augmentations as SimCLR, including ResizedCrop, ColorJitter, Grayscale, and HorizontalFlip”"
_MOCO_V2 = "“For MoCo v2, the queue size, temperature for InfoNCE loss, weight decay were 4,096, 1.0, and 1.0×10⁻⁴”"
_EQ_12 = "Eq. 12: its loss is ℓ_psa + λ_psl ℓ_psl"
_CONSTANTS = "“τ, λ_psl …, and σ for positive sampling were set as 0.5, 0.1, and 0.001”"
_AFTER_WARMUP = "“PSL will be involved in training after the finish of the learning rate warmup”"
_PREDICTOR = "“the learning rates for predictor networks … are 10×”"
_PCL = "“we set the loss weight of ProtoNCE to 0.01 and the number of clusters to {250, 500, 1000}”"

STATED: Mapping[str, Reference] = {
    "views.turns": Reference(1, _SIMCLR),
    "views.rotation": Reference(0.0, _SIMCLR),
    "views.blur": Reference((0.0, 0.0), "“We have removed GaussianBlur”"),
    "views.solarise": Reference((0.0, 0.0), _SIMCLR),
    "network.width": Reference(1.0, "“the standard ResNet backbones”"),
    "network.hidden": Reference(
        4096, "“the projection dimension and hidden size were 256 and 4096 for both two networks”"
    ),
    "network.dimension": Reference(256, "“the projection dimension and hidden size were 256 and 4096”"),
    "network.momentum": Reference(0.996, "“we set it to 0.996 for both BYOL and ProPos”"),
    "network.momentum_schedule": Reference("constant", "“we set it to 0.996 for both BYOL and ProPos”"),
    "network.bn_groups": Reference(4, "“trained on 4 NVIDIA V100 GPUs”, “We have not employed SyncBN”"),
    "network.shuffle_bn": Reference(True, "“Instead, we adopt the shufflingBN in MoCo”"),
    "propos.contrast_weight": Reference(0.0, _EQ_12),
    "propos.pull_weight": Reference(0.0, _EQ_12),
    "propos.prototypes": Reference("scattered", _EQ_12),
    "propos.sigma": Reference(0.001, _CONSTANTS),
    "propos.psl_weight": Reference(0.1, _CONSTANTS),
    "propos.temperature": Reference(0.5, _CONSTANTS),
    "propos.psl_start": Reference(None, _AFTER_WARMUP),
    "propos.queue_size": Reference(0, "“we use the representations within mini-batch”"),
    "propos.predictor_rate": Reference(10.0, _PREDICTOR),
    "byol.predictor_rate": Reference(10.0, _PREDICTOR),
    "byol-cc.predictor_rate": Reference(10.0, _PREDICTOR),
    "byol-pcl.predictor_rate": Reference(10.0, _PREDICTOR),
    **{f"{method}.queue_size": Reference(4096, _MOCO_V2) for method in ("moco", "pcl")},
    **{f"{method}.temperature": Reference(1.0, _MOCO_V2) for method in ("moco", "pcl")},
    **{f"{method}.prototypes_weight": Reference(0.01, _PCL) for method in ("pcl", "byol-pcl")},
    **{f"{method}.clusters": Reference((250, 500, 1000), _PCL) for method in ("pcl", "byol-pcl")},
    "cc-psl.psl_weight": Reference(0.1, _CONSTANTS),
    "cc-psl.psl_temperature": Reference(0.5, _CONSTANTS),
    "cc-psl.psl_start": Reference(None, _AFTER_WARMUP),
    "estep.embeddings": Reference("fresh", "“spherical k-means … on the features extracted from the target network”"),
    "estep.every": Reference(1, "“k-means clustering is performed in the E-step at the beginning of each epoch”"),
    "estep.averaged": Reference(0, "“with k-means++ initialization”, of the images themselves"),
    "estep.restarts": Reference(10, "“k-means clustering with 10 different initialization”"),
    "train.epochs": Reference(1000, "“We train all methods with 1,000 epochs”"),
    "train.batch_size": Reference(256, "“The mini-batch size was 512 for MoCo and 256 for the remaining methods”"),
    "train.balanced": Reference(False, "Algorithm 1: “Randomly sample a mini-batch”"),
    "train.optimiser": Reference("sgd", "“the stochastic gradient descent (SGD) optimizer”"),
    "train.lr": Reference(0.05, "“The base learning rate for MoCo v2, BYOL, and ProPos were 0.05”, for 256 images"),
    "train.schedule": Reference("cosine", "“the cosine decay learning rate schedule”"),
    "train.warmup": Reference(50, "“with 50 epochs for learning rate warmup”"),
}


def _elsewhere(where: str, **values: Any) -> dict[str, Reference]:
    """Return values that are not the paper's; a key's dot is written as two underscores."""
    return {key.replace("__", "."): Reference(value, where, paper=False) for key, value in values.items()}


_CONCENTRATION = "MoCo's temperature, to whose mean concentrations are scaled"
_FOR_CIFAR = "SimCLR's and the released code's for CIFAR"
ELSEWHERE: Mapping[str, Reference] = {
    **_elsewhere("SimCLR's", views__crop_scale=(0.08, 1.0), views__crop_ratio=(0.75, 4 / 3)),
    **_elsewhere("SimCLR's", views__flip=0.5, views__jitter=0.8, views__grey=0.2),
    **_elsewhere(_FOR_CIFAR, views__brightness=0.4, views__contrast=0.4),
    **_elsewhere(_FOR_CIFAR, views__saturation=0.4, views__hue=0.1),
    **_elsewhere("as torchvision's ColorJitter, with which the released code makes them", views__colours="in-turn"),
    **_elsewhere(
        "nothing is pretrained", start__network=None, start__weights=None, start__sha256=None, start__description=None
    ),
    **_elsewhere("nothing is pretrained", start__learns="nothing", start__norms="kept"),
    **_elsewhere("as released for CIFAR-10; CIFAR-20's has both views in one pass", network__joint_views=False),
    **_elsewhere("SimCLR's; the paper has no contrast", propos__contrast_temperature=0.5),
    **_elsewhere("of recipes for a CPU; the paper has no pull", propos__pull_share=0.25),
    **_elsewhere("SimCLR's", simclr__temperature=0.5),
    **{f"{method}.temperature": Reference(0.5, "CC's", paper=False) for method in ("cc", "cc-psl")},
    **{f"{method}.cluster_temperature": Reference(1.0, "CC's", paper=False) for method in ("cc", "byol-cc")},
    **{f"{method}.concentration": Reference(1.0, _CONCENTRATION, paper=False) for method in ("pcl", "byol-pcl")},
    **_elsewhere("as released for CIFAR", train__weight_decay=5e-4, train__sgd_momentum=0.9, train__decay_norms=True),
    **_elsewhere("a step for each mini-batch, as in Algorithm 1", train__accumulate=1),
}
# No effect on the paper's methods.
UNRELATED: Mapping[str, str] = {
    "views.preset": "a name for the views below",
    "network.components": "only for pretrained features",
    "network.whitening": "only for pretrained features",
    **dict.fromkeys(("strong.operations", "strong.cutout"), "only for stages with strong views"),
    "train.milestones": "only for the schedule `steps`",
    "train.precision": "of the backbone (default on a GPU: half precision)",
    **dict.fromkeys(
        ("train.deterministic", "train.compile", "train.recompute"), "changes speed or memory, not the method"
    ),
    "train.checkpoint_minutes": "changes when checkpoints are written, not the method",
    "log.tensorboard": "changes what is logged, not the method",
}

# The paper's values for some data sets, or for a recipe's experiment.
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
    "views.size": Reference(32, "table 1: 32×32"),
    "network.stem": Reference(
        "small", "“a convolution layer of kernel size 3×3 and stride 1, and remove the first max-pooling”"
    ),
}
_R18 = {"network.backbone": Reference("resnet18", "“Unless noted otherwise, we use ResNet-18”")}
_R34 = {
    "network.backbone": Reference(
        "resnet34", "“ResNet-34 … to report the main results on moderate-scale benchmark datasets”"
    )
}
_R50 = {"network.backbone": Reference("resnet50", "“ResNet-50 on ImageNet-1k”")}
_STEM = {"network.stem": Reference("imagenet", "the first convolution is replaced “on CIFAR-10 and CIFAR-100” alone")}
_AT_96 = {"views.size": Reference(96, "table 1: 96×96"), **_STEM, **_WHOLE}
_AT_224 = {"views.size": Reference(224, "table 1: 224×224"), **_STEM, **_CENTRE}
_TABLE_S1 = {"views.size": Reference(224, "table s1: “an original image size (224)”"), **_STEM, **_CENTRE, **_R34}
_TINY = {"network.backbone": Reference("resnet18", "“ResNet-18 on Tiny-ImageNet”"), **_AT_224}
_IMAGENET_1K = {**_R50, **_AT_224, "train.epochs": Reference(200, "“we trained a ResNet-50 for 200 epochs”")}
_TABLE_8 = {
    "network.backbone": Reference("resnet50", "“trained ProPos with ResNet-50 for 300 epochs”"),
    "train.epochs": Reference(300, "“trained ProPos with ResNet-50 for 300 epochs”"),
    **_elsewhere("SCAN's, whose settings the paper follows there", views__size=224),
    **_STEM,
    **_CENTRE,
}

ROWS: Mapping[str, Mapping[str, Reference]] = {
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
    "tiny-imagenet-queue": {**_TINY, "train.epochs": Reference(200, "“the same settings … except for 200 epochs”")},
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

# The paper's values for other methods than its own.
_MOCO = {
    "network.momentum": Reference(0.99, "“0.99 for MoCo v2”"),
    "train.weight_decay": Reference(1e-4, _MOCO_V2),
    "train.batch_size": Reference(
        512, "“The mini-batch size was 512 for MoCo”; PCL “under the fair conditions of MoCo”"
    ),
}
OF_METHODS: Mapping[str, Mapping[str, Reference]] = {
    "moco": _MOCO,
    "pcl": _MOCO,
}

# Why a setting is not the paper's.
_CODE = "as in the authors' released code"
_FOUR = "their gather passes 1/4 of the gradient on four processes, so that 0.1 acts as 0.025"
_RELEASED = {
    "propos.psl_weight": _FOUR,
    "train.schedule": f"{_CODE}: the cosine is as long as all epochs and starts after the warm-up",
}
_RELEASED_CIFAR_20 = {
    **_RELEASED,
    **dict.fromkeys(("network.momentum_schedule", "network.joint_views", "train.balanced"), _CODE),
}
DIFFERENCES: Mapping[str, Mapping[str, str]] = {
    "tiny-imagenet-queue": {
        "propos.queue_size": "the figure has several sizes; this is one of them (--set propos.queue_size=…)"
    },
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
        **dict.fromkeys(("propos.sigma", "propos.queue_size", "estep.every", "train.optimiser", "train.lr"), _CODE),
        **dict.fromkeys(("train.warmup", "propos.predictor_rate", "train.weight_decay", "train.decay_norms"), _CODE),
        "views.saturation": _CODE,
        "train.accumulate": f"{_CODE}: sixteen of 256 images are the 4,096 of a step",
        "network.bn_groups": f"{_CODE}, which has SyncBN there",
        "network.shuffle_bn": f"{_CODE}, which has SyncBN there",
        "propos.psl_weight": "as released: 0.001, of whose gradient 1/8 is passed on eight processes",
        "train.schedule": _RELEASED["train.schedule"],
    },
}
_CC = "“For CC, we used their official code”, which has this"
_ABLATION = "removed by the ablation"
_OWN = "the method's own default"
OWN_DEFAULTS = {"cc": _CC, "cc-psl": _CC}
_NO_WARMUP = {"cc-psl.psl_start": "there is no warm-up: as many epochs as the paper's warm-up"}
_SMALL = "for one machine without a GPU (docs/results.md)"
_SYSTEM = "as the method's authors publish it"


def paper_diff(name: str, config: Config) -> list[Row]:
    """Compare every setting of a recipe for a method with the paper's value."""
    from propos.methods import complete_sections, find_method  # torch, which a list of recipes does without

    config = complete_sections(config)
    references, notes = {**ELSEWHERE, **STATED, **ROWS.get(name, {})}, dict(DIFFERENCES.get(name, {}))
    for method in config.sections:  # the method, and the one it builds on
        references |= OF_METHODS.get(method, {})
        notes |= dict.fromkeys(find_method(method).adapt(config, at_scale=True), OWN_DEFAULTS.get(method, _OWN))
    notes |= _NO_WARMUP
    otherwise = None if name in PAPER else _SYSTEM if name in SYSTEMS else _SMALL
    rows = []
    for key, ours in config.flat().items():
        if key.startswith(PERSONAL):
            continue
        section, _, setting = key.partition(".")
        ablation = section.startswith("propos-")
        known = f"propos.{setting}" if ablation else key
        row = Row(key, ours, references.get(known), UNRELATED.get(key))
        if row.differs:
            row = replace(row, note=notes.get(known, _ABLATION if ablation else otherwise))
        elif row.reference is None and section in config.sections:
            row = replace(row, note="the method's own setting; the paper gives no value")
        rows.append(row)
    return rows
