"""Runs, from a request to results: planning, opening images, training.

Names are imported when first used, so that a run's images can be opened without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from propos.runner.decision import Decision
    from propos.runner.execute import execute_plan, save
    from propos.runner.planner import plan, plan_resumed
    from propos.runner.prediction import agree_on_predictions, announced_predictions, rejecting_model, write_predictions
    from propos.runner.progress import Reporter, SilentReporter
    from propos.runner.ranks import following_first_process
    from propos.runner.request import Length, Origin, Output, Request
    from propos.runner.run import run_request
    from propos.runner.sources import NoImages, open_like, open_run_images

__all__ = [
    "Decision",
    "Length",
    "NoImages",
    "Origin",
    "Output",
    "Reporter",
    "Request",
    "SilentReporter",
    "agree_on_predictions",
    "announced_predictions",
    "execute_plan",
    "following_first_process",
    "open_like",
    "open_run_images",
    "plan",
    "plan_resumed",
    "rejecting_model",
    "run_request",
    "save",
    "write_predictions",
]

_HOMES = {
    "execute": ("execute_plan", "save"),
    "run": ("run_request",),
    "decision": ("Decision",),
    "planner": ("plan", "plan_resumed"),
    "request": ("Length", "Origin", "Output", "Request"),
    "sources": ("NoImages", "open_like", "open_run_images"),
    "prediction": ("agree_on_predictions", "announced_predictions", "rejecting_model", "write_predictions"),
    "ranks": ("following_first_process",),
    "progress": ("SilentReporter", "Reporter"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"propos.runner.{home}"), name)
    raise AttributeError(f"module 'propos.runner' has no attribute {name!r}")
