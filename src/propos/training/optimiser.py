"""The optimiser and its groups of parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from propos.config import TrainSettings
from propos.methods import Method, Rate, Stage
from propos.training.optimisers import Lars, exempt_vectors
from propos.training.schedule import Schedule


def build_optimiser(
    settings: TrainSettings, stage: Stage, method: Method, device: torch.device
) -> torch.optim.Optimizer:
    """Build the optimiser that the settings name; each group has its `Rate`."""
    by_rate: dict[Rate, list[nn.Parameter]] = {}
    for name, parameter in method.named_parameters():
        if parameter.requires_grad:
            by_rate.setdefault(_rate(stage, name), []).append(parameter)
    groups = [group for rate, alike in by_rate.items() for group in _groups(alike, {"rate": rate}, settings)]
    if settings.optimiser == "lars":
        return Lars(groups, lr=settings.lr, momentum=settings.sgd_momentum, weight_decay=settings.weight_decay)
    kernels: dict[str, Any] = {"fused": True} if device.type in ("cpu", "cuda") else {"foreach": True}
    if settings.optimiser in ("adam", "adamw"):
        kind = torch.optim.Adam if settings.optimiser == "adam" else torch.optim.AdamW
        return kind(groups, lr=settings.lr, weight_decay=settings.weight_decay, **kernels)
    return torch.optim.SGD(
        groups, lr=settings.lr, momentum=settings.sgd_momentum, weight_decay=settings.weight_decay, **kernels
    )


def set_rates(optimiser: torch.optim.Optimizer, schedule: Schedule, step: int) -> None:
    """Set the learning rates of a step counted over the whole stage."""
    for group in optimiser.param_groups:
        group["lr"] = rate_at(group["rate"], schedule, step)


def drop_early_gradients(optimiser: torch.optim.Optimizer, schedule: Schedule, step: int) -> None:
    """Remove the gradients of modules that are not trained yet, so that they gather no momentum before they are."""
    for group in optimiser.param_groups:
        if _waits(group["rate"], schedule, step):
            for parameter in group["params"]:
                parameter.grad = None


def rate_at(rate: Rate, schedule: Schedule, step: int) -> float:
    """Return a module's learning rate at a step of the stage."""
    if _waits(rate, schedule, step):
        return 0.0
    return rate.scale * (schedule.peak if rate.constant else schedule.learning_rate(step))


def _waits(rate: Rate, schedule: Schedule, step: int) -> bool:
    return step < rate.first_epoch * schedule.steps


def _rate(stage: Stage, name: str) -> Rate:
    """Return the rate of a parameter: that of the innermost module that has one."""
    matching = [module for module in stage.rates if name.startswith(f"{module}.")]
    return stage.rates[max(matching, key=len)] if matching else Rate()


def _groups(
    parameters: Iterable[nn.Parameter], shared: dict[str, Any], settings: TrainSettings
) -> list[dict[str, Any]]:
    """Return one group, or two if biases and batch norm (all one-dimensional parameters) have no weight decay."""
    if settings.decay_norms:
        return [{"params": list(parameters), **shared}]
    return [{**group, **shared} for group in exempt_vectors(parameters, adapts=settings.optimiser == "lars")]
