"""Variants of a method that differ from it in settings alone: a paper's ablations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import create_model

from propos.config import Config
from propos.methods.base import Method


def variant(original: type[Method], **changes: Any) -> Callable[[type], type[Method]]:
    """Return a class decorator that makes a variant of a method: other defaults, and the class's own attributes.

    A variant takes a recipe's settings for the original, except for the settings that it changes.
    """

    def make(described: type) -> type[Method]:
        ours, theirs = _name(described), _name(original)

        def adapt(cls: type[Method], recipe: Config, at_scale: bool) -> dict[str, Any]:
            """Take the original's settings from the recipe."""
            kept = {key: value for key, value in recipe.sections.get(theirs, {}).items() if key not in changes}
            return {**original.adapt(recipe, at_scale), **{f"{ours}.{key}": value for key, value in kept.items()}}

        attributes = {name: value for name, value in vars(described).items() if name not in ("__dict__", "__weakref__")}
        made = {"Settings": _with_defaults(original, changes), "adapt": classmethod(adapt)}
        return type(described.__name__, (original,), {**attributes, **made})

    return make


def _with_defaults(original: type[Method], defaults: dict[str, Any]) -> type[Any]:
    """Return a method's settings with other defaults, of the same types."""
    known = original.Settings.model_fields
    fields: Any = {name: (Annotated[known[name].annotation, known[name]], value) for name, value in defaults.items()}
    return create_model("Settings", __base__=original.Settings, __doc__=original.Settings.__doc__, **fields)


def _name(method: type) -> str:
    """Return the name of a method, which is its module's."""
    return method.__module__.rpartition(".")[2].replace("_", "-")
