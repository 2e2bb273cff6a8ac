"""A method with the optimiser and schedule of its present stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from propos.common.errors import InputError
from propos.config import Config
from propos.data import Source
from propos.distributed import local_rank, started_by_torchrun, world_size
from propos.methods import Method, Stage, build_method, stages_of
from propos.methods.seeds import derive
from propos.networks import EmaCopy, ResNet
from propos.training.optimiser import build_optimiser
from propos.training.schedule import Schedule
from propos.training.stages import stage_epochs


@dataclass(frozen=True)
class Learner:
    """The state of training that steps read and change."""

    config: Config
    device: torch.device
    method: Method
    stages: tuple[Stage, ...]  # empty if nothing is trained
    number: int  # of the present stage
    stage: Stage
    epochs: range  # of the run that are the stage's
    seed: int  # of the stage's draws
    images: tuple[int, int, int]  # numbers of images: clustered, only trained on, left out by corrections
    optimiser: torch.optim.Optimizer | None  # None if nothing is trained: building one loads torch's compiler
    scaler: torch.amp.GradScaler
    schedule: Schedule

    @property
    def dimension(self) -> int:
        """The width of embeddings."""
        return self.method.embedder.dimension

    def optimiser_state(self, parameter: nn.Parameter) -> dict[str, Any]:
        """Return the optimiser's state of a parameter."""
        return {} if self.optimiser is None else self.optimiser.state[parameter]

    def stage_epoch(self, epoch: int) -> int:
        """Return an epoch of the run as one of the stage."""
        return epoch - self.epochs.start


def build_learner(config: Config, source: Source, device: torch.device, left_out: int = 0) -> Learner:
    """Build a learner in its first stage from complete settings; `left_out` is the number of excluded images."""
    check_shares(config, len(source) - left_out)
    images = len(source), len(source.unlabelled or ()), left_out
    method = build_method(config, source.channels, *images[:2]).to(device)
    if config.train.recompute and isinstance(method.online.backbone, ResNet):
        method.online.backbone.recompute = True
    if config.train.compile:
        method.compile_networks()
    stages = stages_of(config)
    return Learner(
        config, device, method, stages, images=images, **_of_stage(config, method, stages, device, images, 0)
    )


def at_stage(learner: Learner, number: int) -> Learner:
    """Return the learner in a stage, with a new optimiser; the learner itself if it is in that stage."""
    if number == learner.number:
        return learner
    stage = _of_stage(learner.config, learner.method, learner.stages, learner.device, learner.images, number)
    return replace(learner, **stage)


def _of_stage(
    config: Config,
    method: Method,
    stages: tuple[Stage, ...],
    device: torch.device,
    images: tuple[int, int, int],
    number: int,
) -> dict[str, Any]:
    """Return the learner's fields that depend on the stage, and freeze the modules that it does not train."""
    stage = stages[number] if stages else Stage()
    epochs = stage_epochs(stages, config.train.epochs)[number] if stages else range(config.train.epochs)
    changes = {f"train.{key}": value for key, value in {**stage.train, "epochs": len(epochs)}.items()}
    changed = config.with_settings(changes)
    clustered, more, left_out = images
    check_shares(changed, clustered - left_out)
    settings = changed.train
    freeze(method, stage.trains)
    return {
        "number": number,
        "stage": stage,
        "epochs": epochs,
        "seed": derive(config.seed, "stage", number) if number else config.seed,
        "optimiser": build_optimiser(settings, stage, method, device) if stages else None,
        "scaler": torch.amp.GradScaler(device.type, enabled=settings.precision == "float16"),
        # Tables contain only the clustered images, so a stage with tables trains on no others.
        "schedule": Schedule(settings, config.network, clustered, more if stage.tables_every is None else 0, left_out),
    }


def freeze(method: Method, trains: tuple[str, ...] | None) -> None:
    """Enable gradients for the modules that a stage trains, and for nothing else."""
    copies = tuple(name for name, module in method.named_modules() if isinstance(module, EmaCopy))
    for name, parameter in method.named_parameters():
        parameter.requires_grad_((trains is None or is_part(name, trains)) and not is_part(name, copies))


def is_part(name: str, modules: tuple[str, ...]) -> bool:
    """Return whether a dotted name is one of these modules or inside one of them."""
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def trained_parameters(method: Method) -> list[nn.Parameter]:
    """Return the parameters that gradients reach."""
    return [parameter for parameter in method.parameters() if parameter.requires_grad]


def check_shares(config: Config, images: int) -> None:
    """Refuse more processes or batch-norm groups than a batch can be divided into, and shuffling of one group."""
    batch, groups = min(config.train.batch_size, images), config.network.bn_groups
    if batch < world_size():
        raise InputError(f"{world_size()} processes share batches of {batch} images: start at most {batch}")
    if groups > 1 and batch < 2 * groups:
        raise InputError(
            f"network.bn_groups = {groups}: batches of {batch} images have at most {batch // 2} slices of two: "
            "set it to 1 (and network.shuffle_bn=false)"
        )
    if config.network.shuffle_bn and groups == 1:
        raise InputError(
            "network.shuffle_bn = true: one group is the whole batch in any order: set network.bn_groups to 2 or more "
            "(the paper's runs had 4), or network.shuffle_bn=false"
        )


def choose_device(name: str) -> torch.device:
    """Return the named device, or with `auto` the fastest available one."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if started_by_torchrun():
        available["mps"] = False  # processes cannot share a batch there
    if name == "auto":
        name = next(device for device in ("cuda", "mps", "cpu") if available[device])
    if name not in available:
        raise InputError(f"--device {name}: choose auto, cpu, cuda or mps")
    if not available[name]:
        raise InputError(f"--device {name}: not available on this machine; use --device auto")
    if name == "cuda" and local_rank() >= torch.cuda.device_count():
        there = torch.cuda.device_count()
        raise InputError(f"more processes than this machine has GPUs ({there}): use --nproc-per-node={there}")
    if name == "cuda" and started_by_torchrun():
        torch.cuda.set_device(local_rank())
        return torch.device(name, local_rank())
    return torch.device(name)
