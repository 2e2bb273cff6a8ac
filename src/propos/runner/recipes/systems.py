"""Other systems with their own published settings, where those are known."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from propos.config import Config, method_names
from propos.runner.recipes.methods import for_method
from propos.runner.recipes.paper import cifar_10, cifar_10_r18, imagenet_1k
from propos.runner.recipes.pretrained import pretrained

# SimCLR as SCAN's public code trains it on CIFAR-10, and NNM's after it.
_SIMCLR = {
    "views.crop_scale": (0.2, 1.0),
    "network.dimension": 128,
    "simclr.temperature": 0.1,
    "train.batch_size": 512,
    "train.lr": 0.2,  # 0.4 for 512 images
    "train.warmup": 0,
    "train.weight_decay": 1e-4,
}

Changes = dict[str, Any]  # settings by dotted key
SYSTEMS: dict[str, Callable[[], Config]] = {}


def _system(method: str, base: Callable[[], Config]) -> Callable[[Callable[[], Changes]], Callable[[], Changes]]:
    """Add a recipe to `SYSTEMS` by the name of the function that returns its changes to a method on a base recipe."""

    def add(changes: Callable[[], Changes]) -> Callable[[], Changes]:
        name = changes.__name__.replace("_", "-")

        @wraps(changes)
        def recipe() -> Config:
            config = for_method(base(), method, at_scale=True)
            return config.with_settings({**changes(), "recipe": name})

        if method in method_names():
            SYSTEMS[name] = recipe
        return changes

    return add


def _views(crop: tuple[float, float], hue: float, grey: float) -> dict[str, Any]:
    """Return views whose colours always change, as much as in SimCLR's but for the hue."""
    colours = {f"views.{name}": 0.4 for name in ("brightness", "contrast", "saturation")}
    return {"views.crop_scale": crop, "views.jitter": 1.0, **colours, "views.hue": hue, "views.grey": grey}


def _after_simclr(method: str, epochs: int) -> Changes:
    """Return the settings of heads that are trained after 500 epochs of SimCLR."""
    heads = {f"{method}.pretext_share": 500 / epochs, f"{method}.heads_lr": 5e-5}  # 1e-4 whatever the batch
    return {**_SIMCLR, **heads, "train.epochs": epochs}


@_system("scan", cifar_10_r18)
def scan_cifar_10() -> Changes:
    """CIFAR-10 with SCAN, as in its public code: ResNet-18, 500 epochs of SimCLR, then as many steps as there.

    There 50 epochs in batches of 128 and 200 in batches of 1,000 follow; here all batches have 512.
    """
    return _after_simclr("scan", epochs=800)


@_system("nnm", cifar_10_r18)
def nnm_cifar_10() -> Changes:
    """CIFAR-10 with NNM, as in its public code: ResNet-18, 500 epochs of SimCLR, then as many steps as there.

    There 100 epochs in batches of 200 follow; here all batches have 512.
    """
    return _after_simclr("nnm", epochs=757)


@_system("temi", pretrained)
def temi_dino() -> Changes:
    """Photographs with TEMI on DINO's ViT-B/16, as in its public code: 16 heads, 50 neighbours, 100 epochs."""
    return {
        "start.network": "hub:facebook/dino-vitb16",
        "network.components": 768,  # all, none of them evened out
        "network.whitening": 0.0,
        "train.epochs": 100,
        "train.batch_size": 1024,
    }


@_system("turtle", pretrained)
def turtle_dinov2() -> Changes:
    """Photographs with TURTLE on DINOv2's ViT-S/14: batches of 10,000; of 50,000 images 6,000 steps, as in its code."""
    return {
        "start.network": "dinov2-s",
        "network.components": 384,  # all, none of them evened out
        "network.whitening": 0.0,
        "train.epochs": 1200,
        "train.batch_size": 10_000,
    }


@_system("spice", cifar_10_r18)
def spice_cifar_10() -> Changes:
    """CIFAR-10 with SPICE, as in its public code: ResNet-18, 1,000 epochs of MoCo, then 240 passes of the heads.

    There 2^20 steps of a new network follow; here 187,000 of the one there is, in batches of 128 as before.
    """
    views = {"views.crop_scale": (0.2, 1.0), "views.blur": (0.5, 0.5), "strong.cutout": 0.5}
    moco = {
        "network.dimension": 128,
        "network.momentum": 0.999,
        "moco.temperature": 0.2,
        "moco.queue_size": 12800,
        "train.lr": 0.03,  # 0.015 for 128 images
        "train.warmup": 0,
        "train.batch_size": 128,
    }
    sizes = {"spice.pretext_share": 1000 / 1720, "train.epochs": 1720}
    return {**views, **moco, **sizes}


@_system("dcboost", cifar_10)
def dcboost_cifar_10() -> Changes:
    """CIFAR-10 with DCBoost on ProPos, as its paper says: ResNet-34, added at epoch 800 of 1,000."""
    return {"train.batch_size": 512}


@_system("conr", cifar_10_r18)
def conr_cifar_10() -> Changes:
    """CIFAR-10 with CoNR on BYOL, as in its public code: ResNet-18, batches of 512, added at epoch 800 of 1,000.

    There one cosine is as long as all epochs; here BYOL's ends with its 800. Its gather passes a quarter of the
    gradient on four GPUs: that is the weight.
    """
    released = {"network.momentum_schedule": "cosine", "train.batch_size": 512, "train.schedule": "cosine-of-all"}
    return {**released, "conr.neighbours_weight": 1 / 4}


@_system("cdc", cifar_10)
def cdc_cifar_10() -> Changes:
    """CIFAR-10 with CDC, as in its public code: ResNet-34, 100 epochs in batches of 500 after 1,000 of MoCo.

    There MoCo has its own settings, a larger queue among them; here ProPos's paper's, in the same batches.
    """
    return {"cdc.pretext_share": 1000 / 1100, "train.epochs": 1100, "train.batch_size": 500}


@_system("lfss", cifar_10_r18)
def lfss_cifar_10() -> Changes:
    """CIFAR-10 with LFSS, as in its public code: ResNet-18, 1,000 epochs in batches of 256, prototypes from the first.

    There epochs are of the 50,000 training images.
    """
    schedule = {"train.batch_size": 256, "train.warmup": 10, "train.schedule": "cosine-of-all"}
    return {**schedule, "lfss.prototypes_start": 0}


@_system("idfd", cifar_10_r18)
def idfd_cifar_10() -> Changes:
    """CIFAR-10 with IDFD, as in its public code: ResNet-18, 2,000 epochs in batches of 128."""
    views = {**_views((0.2, 1.0), hue=0.0, grey=0.2), "views.flip": 0.0}
    return {**views, "train.epochs": 2000, "estep.restarts": 20}


@_system("secu", cifar_10_r18)
def secu_cifar_10() -> Changes:
    """CIFAR-10 with SeCu, as in its public code with sizes held: ResNet-18, centres of 10, 20, … 100 clusters."""
    views = {"crop_scale": (0.3, 1.0), "saturation": 0.2, "blur": (1.0, 0.1), "solarise": (0.0, 0.2)}
    changes = {f"views.{name}": value for name, value in views.items()}
    return {**changes, "train.epochs": 401}


@_system("mice", cifar_10)
def mice_cifar_10() -> Changes:
    """CIFAR-10 with MiCE, as in its public code: ResNet-34, ten experts, 1,000 epochs in batches of 256.

    There the gate has no batch norm.
    """
    views = _views((0.2, 1.0), hue=0.4, grey=0.2)
    return {**views, "train.batch_size": 256}


@_system("localagg", imagenet_1k)
def localagg_imagenet_1k() -> Changes:
    """ImageNet-1k with LocalAgg, as in its public code: ResNet-18, 200 epochs, ten clusterings into 30,000."""
    changes = {"network.backbone": "resnet18"}
    return {**changes, **_views((0.2, 1.0), hue=0.4, grey=0.2)}


@_system("pcl", imagenet_1k)
def pcl_imagenet_1k() -> Changes:
    """ImageNet-1k with PCL, second version, as in its public code: ResNet-50, up to 100,000 prototypes, 200 epochs.

    There the warm-up keeps the rate: the contrast with prototypes starts at epoch 20.
    """
    own = {"clusters": (25_000, 50_000, 100_000), "negatives": 16_384, "queue_size": 16_384, "prototypes_weight": 1.0}
    own |= {"temperature": 0.2, "concentration": 0.2}
    sizes = {"network.dimension": 128, "network.momentum": 0.999, "train.batch_size": 256, "train.lr": 0.03}
    views = {**_views((0.2, 1.0), hue=0.1, grey=0.2), "views.jitter": 0.8, "views.blur": (0.5, 0.5)}
    return {**{f"pcl.{key}": value for key, value in own.items()}, **sizes, **views, "train.warmup": 20}


@_system("dccm", cifar_10_r18)
def dccm_cifar_10() -> Changes:
    """CIFAR-10 with DCCM, as in its public code but with ResNet-18 and Adam: images turned and cropped, 32 a step.

    There images are shifted and scaled, and 200 epochs pass ten times over each, in two views one after the other;
    here 2,000 with both at once.
    """
    views = {"crop_scale": (0.72, 1.0), "crop_ratio": (1.0, 1.0), "rotation": 20.0, "jitter": 1.0, "brightness": 0.1}
    views |= dict.fromkeys(("contrast", "saturation", "hue", "grey"), 0.0)
    changes = {f"views.{name}": value for name, value in views.items()}
    rate = {"train.lr": 1e-4 * 256 / 32, "train.epochs": 2000}
    return {**changes, **rate}


@_system("iic", cifar_10)
def iic_cifar_10() -> Changes:
    """CIFAR-10 with IIC, as in its public code: ResNet-34, five heads each of 10 and of 70 clusters, 660 pairs a step.

    There 2,000 epochs pair each of 220 images with three views, once for each kind of heads; here 6,000 with one.
    """
    views = {**_views((0.39, 0.39), hue=0.125, grey=0.0), "views.crop_ratio": (1.0, 1.0)}  # 20 of 32 pixels a side
    sizes = {"train.lr": 1e-4 * 256 / 220, "train.batch_size": 220, "train.epochs": 6000}
    return {**views, **sizes}


@_system("pica", cifar_10)
def pica_cifar_10() -> Changes:
    """CIFAR-10 with PICA, as in its public code for CIFAR-100: ResNet-34, heads of 10 and of 70 clusters.

    There 200 epochs pair each image with three views, once for each head; here 600 with one, for both.
    """
    views = _views((0.2, 1.0), hue=0.4, grey=0.2)
    return {**views, "train.batch_size": 256, "train.epochs": 600}


@_system("tcl", cifar_10)
def tcl_cifar_10() -> Changes:
    """CIFAR-10 with TCL, as in its public code: ResNet-34 at 224 px, 1,000 epochs and 200 of boosting, 4 × 256 images.

    Of the two views the weak one alone is blurred, always.
    """
    weak = {"views.crop_scale": (0.2, 1.0), "views.saturation": 0.2, "views.blur": (1.0, 0.0)}
    sizes = {"views.size": 224, "views.plain": "centre", "network.stem": "imagenet", "strong.cutout": 75 / 224}
    four_devices = {"train.batch_size": 1024, "train.lr": 2.5e-5, "network.bn_groups": 4}  # 1e-4 whatever the batch
    return {**weak, **sizes, **four_devices, "train.epochs": 1200}


@_system("swav", imagenet_1k)
def swav_imagenet_1k() -> Changes:
    """ImageNet-1k with SwAV, as in its public code for two crops: ResNet-50, 3,000 prototypes, 400 epochs of 4,096.

    There rates begin at a sixteenth of the highest and end at a thousandth; here both at 0.
    """
    colours = {f"views.{name}": 0.8 for name in ("brightness", "contrast", "saturation")}
    views = {"views.crop_scale": (0.08, 1.0), **colours, "views.hue": 0.2, "views.blur": (0.5, 0.5)}
    sizes = {"swav.overclustering": 3, "train.batch_size": 4096, "train.epochs": 400}
    return {**views, **sizes}


@_system("gcc", cifar_10_r18)
def gcc_cifar_10() -> Changes:
    """CIFAR-10 with GCC, as in its public code: ResNet-18, 50 epochs of contrast and 950 on a graph, 256 images a step.

    There one cosine, to a thousandth, goes through both; here one to 0 through the second.
    """
    return {"views.crop_scale": (0.2, 1.0)}
