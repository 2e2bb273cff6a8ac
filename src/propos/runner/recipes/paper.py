"""The paper's own settings, a function for each row of its set-up; all that is not named is a default of Config.

Lengths, rates and batch are the paper's: a GPU's work. `propos run cifar-10 --recipe cifar-10`.
"""

from __future__ import annotations

from typing import Any

from propos.config import Config


def paper_32() -> Config:
    """Your own 32×32 colour images with the paper's settings: ResNet-18, 1,000 epochs."""
    return _recipe("paper-32")


def paper_96() -> Config:
    """Your own larger images with the paper's settings: ResNet-34 at 96 px, 1,000 epochs."""
    return _recipe("paper-96", **_photographs(96))


def cifar_10() -> Config:
    """CIFAR-10, tables 2 and s1: ResNet-34, 1,000 epochs."""
    return _recipe("cifar-10", **RESNET34)


def cifar_20() -> Config:
    """CIFAR-20, tables 2 and s1: ResNet-34, 1,000 epochs."""
    return _recipe("cifar-20", **RESNET34)


def cifar_10_r18() -> Config:
    """CIFAR-10 in the ablations, table 6 and the sweeps: ResNet-18, 1,000 epochs."""
    return _recipe("cifar-10-r18")


def cifar_20_r18() -> Config:
    """CIFAR-20 in the ablations, table 6 and the sweeps: ResNet-18, 1,000 epochs."""
    return _recipe("cifar-20-r18")


def stl_10() -> Config:
    """STL-10, table 2: ResNet-34 at 96 px; unlabelled images are aligned, labelled ones also scattered."""
    return _recipe("stl-10", **_photographs(96))


def imagenet_10() -> Config:
    """ImageNet-10, table 2: ResNet-34 at 96 px."""
    return _recipe("imagenet-10", **_photographs(96))


def imagenet_dogs() -> Config:
    """ImageNet-Dogs, table 2: ResNet-34 at 96 px."""
    return _recipe("imagenet-dogs", **_photographs(96))


def imagenet_10_224() -> Config:
    """ImageNet-10 at full size, table s1: ResNet-34 at 224 px."""
    return _recipe("imagenet-10-224", **_photographs(224))


def imagenet_dogs_224() -> Config:
    """ImageNet-Dogs at full size, table s1: ResNet-34 at 224 px."""
    return _recipe("imagenet-dogs-224", **_photographs(224))


def tiny_imagenet() -> Config:
    """Tiny-ImageNet, table 3: ResNet-18 at 224 px."""
    return _recipe("tiny-imagenet", **_photographs(224, "resnet18"))


def tiny_imagenet_queue() -> Config:
    """Tiny-ImageNet in the figure of memory queues: 200 epochs, a queue of 1,024 (--set propos.queue_size=…)."""
    return _recipe(
        "tiny-imagenet-queue", **_photographs(224, "resnet18"), **{"propos.queue_size": 1024, "train.epochs": 200}
    )


def imagenet_1k() -> Config:
    """ImageNet-1k, tables 4 and 5: ResNet-50 at 224 px, 200 epochs."""
    # The paper does not say how long the warm-up of 200 epochs is; 10 is what its authors' code has.
    return _recipe("imagenet-1k", **_photographs(224, "resnet50"), **{"train.epochs": 200, "train.warmup": 10})


def imagenet_50() -> Config:
    """ImageNet-50, table 8: ResNet-50 at 224 px, 300 epochs."""
    return _recipe("imagenet-50", **_photographs(224, "resnet50"), **{"train.epochs": 300})


def imagenet_100() -> Config:
    """ImageNet-100, table 8: ResNet-50 at 224 px, 300 epochs."""
    return _recipe("imagenet-100", **_photographs(224, "resnet50"), **{"train.epochs": 300})


def imagenet_200() -> Config:
    """ImageNet-200, table 8: ResNet-50 at 224 px, 300 epochs."""
    return _recipe("imagenet-200", **_photographs(224, "resnet50"), **{"train.epochs": 300})


def cifar_10_lt() -> Config:
    """CIFAR-10-LT, table 9: ResNet-18, 1,000 epochs."""
    return _recipe("cifar-10-lt")


def cifar_20_lt() -> Config:
    """CIFAR-20-LT, table 9: ResNet-18, 1,000 epochs."""
    return _recipe("cifar-20-lt")


# No SyncBN: each of four GPUs normalised its quarter of the batch, the target's quarters being shuffled.
FOUR_GPUS = {"network.bn_groups": 4, "network.shuffle_bn": True}
FULL_SIZE = 224
RESNET34 = {"network.backbone": "resnet34"}


def _photographs(size: int, backbone: str = "resnet34") -> dict[str, Any]:
    """Return what recipes of photographs have: crops cut from all their pixels, and at full size the usual middle."""
    plain = "centre" if size == FULL_SIZE else "whole"
    views = {"views.size": size, "views.keep": "shapes", "views.plain": plain}
    return {**views, "network.backbone": backbone, "network.stem": "imagenet"}


def _recipe(name: str, **changes: Any) -> Config:
    return Config(recipe=name).with_settings({**FOUR_GPUS, "views.colours": "in-turn", **changes})
