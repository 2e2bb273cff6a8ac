"""The optimiser and its groups of parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from propos.config import TrainSettings
from propos.methods import Stage
from propos.networks import TwinNetwork
from propos.optimisers import Lars, exempt_vectors
from propos.training.schedule import Schedule


def build_optimiser(
    settings: TrainSettings, stage: Stage, network: TwinNetwork, device: torch.device
) -> torch.optim.Optimizer:
    """Build the optimiser that the settings name; each group keeps its rate over the schedule's."""
    of_heads = {id(parameter) for parameter in network.of_cluster_head()}
    late = {id(parameter) for part in stage.late for parameter in network.part(part).parameters()}

    def learns(parameter: nn.Parameter) -> tuple[float, bool, bool]:
        rate = (stage.cluster_head_rate, stage.cluster_head_constant) if id(parameter) in of_heads else (1.0, False)
        return *rate, id(parameter) in late

    others = network.without_predictor()
    groups = []
    for rate, constant, waits in dict.fromkeys(map(learns, others)):
        alike = [parameter for parameter in others if learns(parameter) == (rate, constant, waits)]
        groups += _groups(alike, {"rate": rate, "constant": constant, "late": waits}, settings)
    predictor = {"rate": stage.predictor_rate, "constant": stage.predictor_constant, "late": False}
    groups += _groups(network.of_predictor(), predictor, settings)
    if settings.optimiser == "lars":
        return Lars(groups, lr=settings.lr, momentum=settings.sgd_momentum, weight_decay=settings.weight_decay)
    fused = device.type in ("cpu", "cuda")
    if settings.optimiser in ("adam", "adamw"):
        kind = torch.optim.Adam if settings.optimiser == "adam" else torch.optim.AdamW
        return kind(groups, lr=settings.lr, weight_decay=settings.weight_decay, fused=fused)
    return torch.optim.SGD(
        groups, lr=settings.lr, momentum=settings.sgd_momentum, weight_decay=settings.weight_decay, fused=fused
    )


def set_rates(optimiser: torch.optim.Optimizer, schedule: Schedule, step: int) -> None:
    """Set the learning rates of a step counted over the whole stage; what is late has none in the first epoch."""
    rate = schedule.learning_rate(step)
    for group in optimiser.param_groups:
        stands = group["late"] and step < schedule.steps
        group["lr"] = 0.0 if stands else group["rate"] * (schedule.peak if group["constant"] else rate)


def _groups(
    parameters: Iterable[nn.Parameter], shared: dict[str, Any], settings: TrainSettings
) -> list[dict[str, Any]]:
    """Return one group, or two where biases and batch norm (all that has one dimension) are not to decay."""
    if settings.decay_norms:
        return [{"params": list(parameters), **shared}]
    return [{**group, **shared} for group in exempt_vectors(parameters, adapts=settings.optimiser == "lars")]
