"""Recipes: complete settings for a kind of images, as plain functions."""

from __future__ import annotations

from collections.abc import Callable

from propos.config import Config
from propos.errors import InputError
from propos.methods import check_method, for_method
from propos.recipes.choose import choose_recipe
from propos.recipes.paper import paper_32, paper_96
from propos.recipes.small import digits, photos, small_colour, small_grey

__all__ = ["RECIPES", "build_recipe", "choose_recipe", "describe"]

RECIPES: dict[str, Callable[[], Config]] = {
    "digits": digits,
    "small-grey": small_grey,
    "small-colour": small_colour,
    "photos": photos,
    "paper-32": paper_32,
    "paper-96": paper_96,
}

PAPER = {"paper-32", "paper-96"}


def build_recipe(name: str, method: str = "propos") -> Config:
    """Return the settings of a recipe as a method wants them."""
    if name not in RECIPES:
        raise InputError(f"--recipe {name}: choose one of {', '.join(RECIPES)}")
    check_method(method)
    return for_method(RECIPES[name](), method, at_scale=name in PAPER)


def describe(name: str) -> str:
    """Return a recipe in one line."""
    return (RECIPES[name].__doc__ or "").strip().splitlines()[0]
