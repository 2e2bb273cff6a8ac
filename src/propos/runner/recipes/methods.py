"""Recipes adapted to methods: each method defines its own changes (`Method.adapt`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from propos.config import Config


def for_method(recipe: Config, method: str, at_scale: bool, below: str | None = None) -> Config:
    """Return a recipe's settings for a method; `below` is the pretext method, if it is not the default one.

    Sections of other methods are dropped. The pretext method, if there is one, is adapted first.
    """
    from propos.methods import find_method  # torch, which a list of recipes does without

    kind = find_method(method)
    own = _keyed(method, recipe.sections.get(method, {}))
    changes = {**own, **kind.adapt(recipe, at_scale), "method": method}
    pretext = below or own.get(f"{method}.pretext") or _usual_pretext(kind.Settings.model_fields)
    if pretext is None:
        return recipe.with_settings({"sections": {}, **changes})
    first = for_method(recipe, pretext, at_scale)
    as_pretext = _keyed(pretext, find_method(pretext, "pretext").as_pretext)
    return first.with_settings({**as_pretext, **changes, f"{method}.pretext": pretext})


def continue_with_method(config: Config, method: str) -> Config:
    """Return the settings with which a method continues a finished run of another."""
    from propos.methods import find_method

    kind = find_method(method)
    if _usual_pretext(kind.Settings.model_fields) is None:
        return for_method(config, method, at_scale=False)
    below = config.pretext or config.method
    kept = {name: config.sections[name] for name in (below, method) if name in config.sections}
    changes = {**kind.defaults, **_keyed(method, {**kind.when_continuing, "pretext": below}), "method": method}
    return config.with_settings({"sections": kept, **changes})


def sections_of(method: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the methods whose settings a method reads: its own, and those of the one it builds on."""
    from propos.methods import find_method

    pretext = settings.get(f"{method}.pretext") or _usual_pretext(find_method(method).Settings.model_fields)
    return (method,) if pretext is None else (method, *sections_of(pretext, settings))


def keep_own_sections(recipe: Config) -> Config:
    """Return a recipe with the sections of its method and its pretext method only."""
    read = sections_of(recipe.method, recipe.flat())
    kept = {name: recipe.sections[name] for name in read if name in recipe.sections}
    return recipe.with_settings({"sections": kept})


def _usual_pretext(fields: Mapping[str, Any]) -> str | None:
    return str(fields["pretext"].default) if "pretext" in fields else None


def _keyed(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{method}.{key}": value for key, value in settings.items()}
