"""Everything that learns: the network, its method, its optimiser and the views it sees."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from propos.augment import RandomViews
from propos.config import Config
from propos.data import Source
from propos.errors import InputError
from propos.methods import Method, build_method
from propos.networks import TwinNetwork, build_network
from propos.training.optimiser import build_optimiser
from propos.training.schedule import Schedule
from propos.training.seeds import derive


@dataclass(frozen=True)
class Learner:
    """What a training step changes and reads."""

    config: Config
    device: torch.device
    network: TwinNetwork
    method: Method
    optimiser: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    views: RandomViews
    schedule: Schedule


def build_learner(config: Config, source: Source, device: torch.device) -> Learner:
    """Build a learner for a source from complete settings."""
    assert config.pixels.mean is not None
    assert config.pixels.std is not None
    method = build_method(config)
    network = build_network(config.network, method.parts, source.channels, derive(config.seed, "network"))
    network = network.to(device)
    return Learner(
        config=config,
        device=device,
        network=network,
        method=method,
        optimiser=build_optimiser(config.train, method, network, device),
        scaler=torch.amp.GradScaler(device.type, enabled=config.train.precision == "float16"),
        views=RandomViews(config.views, config.pixels.mean, config.pixels.std),
        schedule=Schedule(config.train, config.network, len(source), len(source.unlabelled or ())),
    )


def choose_device(name: str) -> torch.device:
    """Return the device a person named, or with `auto` the fastest there is."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(device for device in ("cuda", "mps", "cpu") if available[device]))
    if name not in available:
        raise InputError(f"--device {name}: choose auto, cpu, cuda or mps")
    if not available[name]:
        raise InputError(f"--device {name}: there is none on this machine; use --device auto")
    return torch.device(name)
