"""Recipes: complete settings for a kind of images, as plain functions."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from propos.config import Config
from propos.errors import InputError
from propos.recipes import paper, released, small
from propos.recipes.choose import choose_recipe
from propos.recipes.methods import for_method

__all__ = ["PAPER", "RECIPES", "build_recipe", "choose_recipe", "describe", "for_method"]

Recipe = Callable[[], Config]

SMALL: dict[str, Recipe] = {
    "digits": small.digits,
    "small-grey": small.small_grey,
    "small-colour": small.small_colour,
    "photos": small.photos,
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
RECIPES = SMALL | PAPER


def build_recipe(name: str, method: str = "propos") -> Config:
    """Return the settings of a recipe as a method wants them."""
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(RECIPES)}"
        raise InputError(f"--recipe {name}: there is none of this name: {hint}")
    return for_method(RECIPES[name](), method, at_scale=name in PAPER)


def describe(name: str) -> str:
    """Return a recipe in one line."""
    return (RECIPES[name].__doc__ or "").strip().splitlines()[0]
