"""Recipes: complete settings for a kind of images, as plain functions."""

from __future__ import annotations

import difflib

from propos.common.errors import InputError
from propos.config import Config
from propos.runner.recipes.choose import choose_recipe
from propos.runner.recipes.expected_accuracy import EXPECTED_ACCURACY
from propos.runner.recipes.length import fit_length
from propos.runner.recipes.methods import continue_with_method, for_method, keep_own_sections, sections_of
from propos.runner.recipes.paper_diff import Row, paper_diff
from propos.runner.recipes.pretrained import TUNING
from propos.runner.recipes.systems import SYSTEMS
from propos.runner.recipes.table import PAPER, RECIPES

__all__ = [
    "EXPECTED_ACCURACY",
    "PAPER",
    "RECIPES",
    "SYSTEMS",
    "TUNING",
    "Row",
    "build_recipe",
    "choose_recipe",
    "continue_with_method",
    "describe",
    "fit_length",
    "for_method",
    "paper_diff",
    "sections_of",
]


def build_recipe(name: str, method: str | None = None, below: str | None = None) -> Config:
    """Return the settings of a recipe for a method (default: the recipe's own).

    `below` is the method that it builds on, if that is not the default one.
    """
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(RECIPES)}"
        raise InputError(f'--recipe {name}: unknown recipe "{name}": {hint}')
    recipe = RECIPES[name]()
    if method in (None, recipe.method) and below in (None, recipe.pretext):
        return keep_own_sections(recipe)
    return for_method(recipe, method or recipe.method, name in PAPER, below)


def describe(name: str) -> str:
    """Return a recipe in one line."""
    return (RECIPES[name].__doc__ or "").strip().splitlines()[0]
