"""The settings of the authors' released code, if they differ from the paper's.

Its gather passed 1/W of the gradient of prototypes on W processes, so its λ acted as λ/W: that is what stands here. Its
cosines are of all epochs, warm-up included, so its rates do not end at 0.

Two faults are not repeated. Its `forward_v2` (CIFAR-20, Dogs) splits rows that were gathered rank by rank: on four
processes a quarter of the embeddings get their own label. Without a queue it masks empty clusters by the labels of the
local process.
"""

from __future__ import annotations

from propos.config import Config
from propos.runner.recipes.paper import cifar_10_r18, cifar_20, cifar_20_r18, imagenet_1k, imagenet_dogs_224

PSL_ON_FOUR = 0.1 / 4  # λ on four processes

CIFAR_20 = {
    "propos.psl_weight": PSL_ON_FOUR,
    "train.schedule": "cosine-of-all",
    "network.momentum_schedule": "cosine",
    "network.joint_views": True,
    "train.balanced": True,
}


def cifar_10_r18_released() -> Config:
    """CIFAR-10, ResNet-18, as released: batch 512."""
    return cifar_10_r18().with_settings(
        {
            "recipe": "cifar-10-r18-released",
            "propos.psl_weight": PSL_ON_FOUR,
            "train.batch_size": 512,
            "train.schedule": "cosine-of-all",
        }
    )


def cifar_20_r18_released() -> Config:
    """CIFAR-20, ResNet-18, as released: momentum to 1, clusters sampled equally often, both views in one pass."""
    return cifar_20_r18().with_settings({"recipe": "cifar-20-r18-released", **CIFAR_20})


def cifar_20_r34_released() -> Config:
    """CIFAR-20, ResNet-34, as released: as with ResNet-18; one rate per epoch, on a cosine from the start."""
    return cifar_20().with_settings(
        {"recipe": "cifar-20-r34-released", **CIFAR_20, "train.schedule": "cosine-by-epoch"}
    )


def byol_released() -> Config:
    """CIFAR-10, ResNet-18, as released for --method byol: batch 512, momentum to 1, an E-step every 10 epochs."""
    return cifar_10_r18().with_settings(
        {
            "recipe": "byol-released",
            "network.momentum_schedule": "cosine",
            "estep.every": 10,
            "train.batch_size": 512,
            "train.schedule": "cosine-of-all",
        }
    )


def imagenet_dogs_released() -> Config:
    """ImageNet-Dogs, ResNet-34, as released: as CIFAR-20, at 224 px, with blur."""
    changes = {"recipe": "imagenet-dogs-released", **CIFAR_20, "views.blur": 0.5}
    return imagenet_dogs_224().with_settings(changes)


def imagenet_1k_released() -> Config:
    """ImageNet-1k, ResNet-50, as released: SyncBN, LARS, 4,096 images a step, a queue of 10,240."""
    return imagenet_1k().with_settings(
        {
            "recipe": "imagenet-1k-released",
            "views.saturation": 0.2,
            "views.blur": (1.0, 0.1),
            "views.solarise": (0.0, 0.2),
            "network.bn_groups": 1,
            "network.shuffle_bn": False,
            "network.momentum": 0.99,
            "network.momentum_schedule": "cosine",
            "propos.sigma": 1e-4,
            "propos.psl_weight": 0.001 / 8,
            "propos.queue_size": 10_240,
            "estep.every": 10,
            "train.optimiser": "lars",
            "train.lr": 0.3,
            "train.schedule": "cosine-of-all",
            "train.batch_size": 256,
            "train.accumulate": 16,
            "train.warmup": 10,
            "train.weight_decay": 1e-6,
            "train.decay_norms": False,
            "propos.predictor_rate": 1.0,
        }
    )
