"""Everything that learns: the network, its method, and what the present stage trains it with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from propos.augment import RandomViews, StrongViews
from propos.config import Config
from propos.data import Source
from propos.distributed import launched, local_rank, world_size
from propos.errors import InputError
from propos.methods import Method, Stage, build_method
from propos.networks import Centres, TwinNetwork, build_network, restart
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
    number: int  # of the stage
    stage: Stage
    epochs: range  # of the run that are the stage's
    seed: int  # of what the stage's steps draw
    images: tuple[int, int, int]  # how many there are, how many more are only trained on, how many take no part
    optimiser: torch.optim.Optimizer | None  # none where nothing learns: making one loads torch's compiler
    scaler: torch.amp.GradScaler
    views: RandomViews
    strong: StrongViews
    schedule: Schedule

    @property
    def columns(self) -> int:
        """How many losses a step has: one a term, and where there are several cluster heads one a head."""
        heads = self.method.parts.heads if self.method.parts.cluster_head is not None else 1
        return len(self.stage.terms) + (heads if heads > 1 else 0)

    @property
    def dimension(self) -> int:
        """The width of embeddings: the projector's, or that of the features themselves."""
        projector = self.method.parts.projector
        return projector.widths[-1] if projector else self.network.online.features

    @property
    def centres(self) -> Centres | None:
        """The cluster centres that the stage learns, if it does."""
        return self.network.centres if "cluster_head" in self.stage.trains else None

    def kept(self, parameter: nn.Parameter) -> dict[str, Any]:
        """Return what the optimiser keeps of a parameter from step to step."""
        return {} if self.optimiser is None else self.optimiser.state[parameter]

    def since(self, epoch: int) -> int:
        """Return an epoch of the run as one of the stage."""
        return epoch - self.epochs.start


def build_learner(config: Config, source: Source, device: torch.device, left_out: int = 0) -> Learner:
    """Build a learner for a source, of which some images take no part, from complete settings, in its first stage."""
    check_shares(config, len(source) - left_out)
    method = build_method(config)
    network = build_network(config.network, method.parts, source.channels, derive(config.seed, "network"))
    network = network.to(device)
    if config.train.recompute:
        network.recompute()
    if config.train.compile:
        network.compile_backbones()
    images = len(source), len(source.unlabelled or ()), left_out
    stage = _of_stage(config, method, network, device, images, 0)
    return Learner(config, device, network, method, images=images, **stage)


def at_stage(learner: Learner, number: int) -> Learner:
    """Return the learner in one of its stages, which begins with an optimiser of its own; in its own, itself."""
    if number == learner.number:
        return learner
    stage = _of_stage(learner.config, learner.method, learner.network, learner.device, learner.images, number)
    return replace(learner, **stage)


def _of_stage(
    config: Config,
    method: Method,
    network: TwinNetwork,
    device: torch.device,
    images: tuple[int, int, int],
    number: int,
) -> dict[str, Any]:
    """Return what belongs to a stage, and freeze what it does not train."""
    stage, epochs = method.stages[number], method.spans(config.train.epochs)[number]
    changes = {f"train.{key}": value for key, value in {**stage.changes, "epochs": len(epochs)}.items()}
    changed = config.with_settings({**changes, **{f"views.{key}": value for key, value in stage.views.items()}})
    mean, std = config.pixels.mean, config.pixels.std
    assert mean is not None
    assert std is not None
    clustered, more, left_out = images
    check_shares(changed, clustered - left_out)
    settings = changed.train
    network.learn_only(stage.trains)
    return {
        "number": number,
        "stage": stage,
        "epochs": epochs,
        "seed": derive(config.seed, "stage", number) if number else config.seed,
        "optimiser": build_optimiser(settings, stage, network, device) if method.terms else None,
        "scaler": torch.amp.GradScaler(device.type, enabled=settings.precision == "float16"),
        "views": RandomViews(changed.views, mean, std),
        "strong": StrongViews(changed.views, changed.strong, mean, std),
        # What a stage computes of all images it knows of those that are clustered.
        "schedule": Schedule(settings, config.network, clustered, 0 if stage.preparations else more, left_out),
    }


@torch.no_grad()
def begin_anew(learner: Learner, epoch: int) -> None:
    """Start the parts that the stage resets once more, by chance, with an optimiser that knows nothing of them."""
    for part in learner.stage.resets:
        module = learner.network.part(part)
        restart(module, derive(learner.seed, "reset", epoch))
        for parameter in module.parameters():
            for value in learner.kept(parameter).values():
                if isinstance(value, Tensor):
                    value.zero_()


def check_shares(config: Config, images: int) -> None:
    """Refuse more processes, or more groups for batch norm, than a batch can be cut into, and one group to shuffle."""
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
    """Return the device a person named, or with `auto` the fastest there is."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if launched():
        available["mps"] = False  # processes cannot share a batch there
    if name == "auto":
        name = next(device for device in ("cuda", "mps", "cpu") if available[device])
    if name not in available:
        raise InputError(f"--device {name}: choose auto, cpu, cuda or mps")
    if not available[name]:
        raise InputError(f"--device {name}: there is none on this machine; use --device auto")
    if name == "cuda" and local_rank() >= torch.cuda.device_count():
        there = torch.cuda.device_count()
        raise InputError(f"more processes than this machine has GPUs ({there}): use --nproc-per-node={there}")
    if name == "cuda" and launched():
        torch.cuda.set_device(local_rank())
        return torch.device(name, local_rank())
    return torch.device(name)
