"""The names of the methods, found without importing them: a method's module imports torch."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

GROUP = "propos.methods"
# Modules without a method.
CONTRACT = (
    "base",
    "clusterings",
    "heads_training",
    "images",
    "pairs",
    "patches",
    "pretext",
    "registry",
    "seeds",
    "setup",
    "stage",
    "variant",
)
REGISTERED: dict[str, Any] = {}  # methods that a script registered, by name


@cache
def method_modules() -> dict[str, str]:
    """Return the modules of the package's own methods by the methods' names, ProPos first."""
    found = find_spec("propos.methods")
    assert found is not None
    assert found.submodule_search_locations is not None
    folder = Path(found.submodule_search_locations[0])
    modules = sorted({path.stem if path.suffix == ".py" else path.name for path in folder.iterdir()} - set(CONTRACT))
    named = {stem.replace("_", "-"): f"propos.methods.{stem}" for stem in modules if not stem.startswith("_")}
    return {"propos": named.pop("propos"), **named}


@cache
def _installed() -> tuple[str, ...]:
    return tuple(sorted({point.name for point in entry_points(group=GROUP)} - method_modules().keys()))


def method_names() -> tuple[str, ...]:
    """Return the names of all methods: the package's own, other packages', and those that a script registered."""
    return *method_modules(), *_installed(), *REGISTERED
