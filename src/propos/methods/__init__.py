"""Methods: each names its objectives, weights, noise, rates and which network embeds."""

from __future__ import annotations

from collections.abc import Callable

from propos.config import Config
from propos.errors import InputError
from propos.methods.byol import byol
from propos.methods.method import Method, Term
from propos.methods.propos import propos

__all__ = ["METHODS", "Method", "Term", "build_method"]

METHODS: dict[str, Callable[[Config], Method]] = {"propos": propos, "byol": byol}


def build_method(config: Config) -> Method:
    """Build the method that the settings name."""
    if config.method not in METHODS:
        raise InputError(f"--method {config.method}: choose one of {', '.join(METHODS)}")
    return METHODS[config.method](config)
