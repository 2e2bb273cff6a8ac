"""The recipes by name."""

from __future__ import annotations

from collections.abc import Callable

from propos.config import Config
from propos.runner.recipes import paper, released, small
from propos.runner.recipes.pretrained import pretrained
from propos.runner.recipes.systems import SYSTEMS

Recipe = Callable[[], Config]

SMALL: dict[str, Recipe] = {
    "digits": small.digits,
    "small-grey": small.small_grey,
    "small-colour": small.small_colour,
    "photos": small.photos,
    "pretrained": pretrained,
}
PAPER: dict[str, Recipe] = {
    "paper-32": paper.paper_32,
    "paper-96": paper.paper_96,
    "cifar-10": paper.cifar_10,
    "cifar-20": paper.cifar_20,
    "cifar-10-r18": paper.cifar_10_r18,
    "cifar-20-r18": paper.cifar_20_r18,
    "stl-10": paper.stl_10,
    "imagenet-10": paper.imagenet_10,
    "imagenet-dogs": paper.imagenet_dogs,
    "imagenet-10-224": paper.imagenet_10_224,
    "imagenet-dogs-224": paper.imagenet_dogs_224,
    "tiny-imagenet": paper.tiny_imagenet,
    "tiny-imagenet-queue": paper.tiny_imagenet_queue,
    "imagenet-1k": paper.imagenet_1k,
    "imagenet-50": paper.imagenet_50,
    "imagenet-100": paper.imagenet_100,
    "imagenet-200": paper.imagenet_200,
    "cifar-10-lt": paper.cifar_10_lt,
    "cifar-20-lt": paper.cifar_20_lt,
    "cifar-10-r18-released": released.cifar_10_r18_released,
    "cifar-20-r18-released": released.cifar_20_r18_released,
    "cifar-20-r34-released": released.cifar_20_r34_released,
    "byol-released": released.byol_released,
    "imagenet-dogs-released": released.imagenet_dogs_released,
    "imagenet-1k-released": released.imagenet_1k_released,
}
RECIPES = SMALL | PAPER | SYSTEMS
