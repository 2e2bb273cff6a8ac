"""From what a person asked for to a finished run: plan it, open its images, carry it out.

The names are resolved when first used: a run's images are opened without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from propos.runner.execute import carry_out, save
    from propos.runner.planning import Plan, plan, plan_of
    from propos.runner.progress import Unwatched, Watcher
    from propos.runner.request import Request
    from propos.runner.run import perform
    from propos.runner.sources import NoImages, open_like, open_source_of

__all__ = [
    "NoImages",
    "Plan",
    "Request",
    "Unwatched",
    "Watcher",
    "carry_out",
    "open_like",
    "open_source_of",
    "perform",
    "plan",
    "plan_of",
    "save",
]

_HOMES = {
    "execute": ("carry_out", "save"),
    "run": ("perform",),
    "planning": ("Plan", "plan", "plan_of"),
    "request": ("Request",),
    "sources": ("NoImages", "open_like", "open_source_of"),
    "progress": ("Unwatched", "Watcher"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"propos.runner.{home}"), name)
    raise AttributeError(f"module 'propos.runner' has no attribute {name!r}")
