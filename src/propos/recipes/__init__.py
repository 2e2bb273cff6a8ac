"""Recipes: complete settings for a kind of images, as plain functions."""

from __future__ import annotations

import difflib

from propos.config import Config
from propos.errors import InputError
from propos.recipes.against import Row, against_paper
from propos.recipes.choose import choose_recipe
from propos.recipes.fared import FARED
from propos.recipes.length import fit_length
from propos.recipes.methods import for_method, on_top
from propos.recipes.pretrained import TUNING
from propos.recipes.table import PAPER, RECIPES, SYSTEMS

__all__ = [
    "FARED",
    "PAPER",
    "RECIPES",
    "SYSTEMS",
    "TUNING",
    "Row",
    "against_paper",
    "build_recipe",
    "choose_recipe",
    "describe",
    "fit_length",
    "for_method",
    "on_top",
]


def build_recipe(name: str, method: str | None = None, below: str | None = None) -> Config:
    """Return the settings of a recipe as a method wants them; without one, as its own does.

    `below` is the method that it builds on, where that is not the usual.
    """
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(RECIPES)}"
        raise InputError(f"--recipe {name}: there is none of this name: {hint}")
    recipe = RECIPES[name]()
    return recipe if method is None else for_method(recipe, method, name in PAPER, below)


def describe(name: str) -> str:
    """Return a recipe in one line."""
    return (RECIPES[name].__doc__ or "").strip().splitlines()[0]
