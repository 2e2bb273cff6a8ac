"""Validation of checkpoints against the settings: the hash only shows that a file is as it was written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from propos.common.errors import InputError, shown
from propos.methods import Method
from propos.networks import Memory
from propos.runs import Measures
from propos.training.learner import Learner, trained_parameters

OPTIMISER = re.compile(r"optimiser\.(\d{1,6})\.(\w+)")
_ADAM = {"step", "exp_avg", "exp_avg_sq"}
KEPT = {"sgd": {"momentum_buffer"}, "lars": {"momentum_buffer"}, "adam": _ADAM, "adamw": _ADAM}
Whole = Annotated[int, Field(ge=0)]
Number = Annotated[float, Field(allow_inf_nan=False)]


def _measured(measures: dict[str, Any] | None) -> dict[str, Any] | None:
    """Check the measures of the E-step at the start of the epoch; they are empty without one."""
    if measures:
        Measures.model_validate(measures)
    return measures


class CheckpointInfo(BaseModel):
    """The part of a checkpoint that is not tensors."""

    model_config = ConfigDict(extra="allow", strict=True)

    method: str
    stage: Whole
    epoch: Whole
    step: Whole
    measures: Annotated[dict[str, Any] | None, AfterValidator(_measured)]
    seconds: dict[str, Number]
    counts: dict[str, Whole]
    scaler: dict[str, int | Number]


def check_info(plain: Any, learner: Learner, where: str) -> CheckpointInfo:
    """Check the plain values; refuse those of another method or of a stage that the method does not have."""
    try:
        found = CheckpointInfo.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise _unfit(where, f"{shown(key, quoted=False)}: {first['msg']}") from None
    if found.method != learner.config.method:
        raise _unfit(where, f"method: it was written by {shown(found.method)}, not by {shown(learner.config.method)}")
    if found.stage >= max(1, len(learner.stages)):
        raise _unfit(where, f"stage: it is in stage {found.stage} of {len(learner.stages)}")
    return found


def check_checkpoint(tensors: Mapping[str, Tensor], plain: CheckpointInfo, learner: Learner, where: str) -> None:
    """Refuse a checkpoint that the settings' network could not have written in the learner's stage."""
    for name, tensor in learner.method.state_dict().items():
        _check(tensors, f"method.{name}", tuple(tensor.shape), tensor.dtype, where)
    _check_memories(tensors, learner, where)
    _check_optimiser(tensors, learner, where)
    _check_state(tensors, plain, learner, where)
    kinds = [{key: type(value) for key, value in each.items()} for each in (plain.scaler, learner.scaler.state_dict())]
    if learner.scaler.is_enabled() and kinds[0] != kinds[1]:
        raise _unfit(where, "scaler: is not the gradient scaler of half precision")
    _check_progress(tensors, plain, learner, where)


def check_labels(labels: Tensor, images: int, clusters: int | None, where: str) -> None:
    """Refuse labels unless there is one for each image, each a cluster's number or -1."""
    _check({"labels": labels}, "labels", (images,), torch.int64, where)
    if len(labels) and (int(labels.min()) < -1 or (clusters is not None and int(labels.max()) >= clusters)):
        raise _unfit(where, f"labels: are not numbers of {clusters} clusters")


def _check_optimiser(tensors: Mapping[str, Tensor], learner: Learner, where: str) -> None:
    trained, kept = trained_parameters(learner.method), KEPT[learner.schedule.settings.optimiser]
    saved: dict[int, set[str]] = {}
    for name in tensors:
        if not name.startswith("optimiser."):
            continue
        match = OPTIMISER.fullmatch(name)
        if match is None or int(match[1]) >= len(trained) or match[2] not in kept:
            raise _unfit(where, f"{shown(name, quoted=False)}: is not part of the optimiser's state")
        parameter = trained[int(match[1])]
        _check(tensors, name, () if match[2] == "step" else tuple(parameter.shape), parameter.dtype, where)
        saved.setdefault(int(match[1]), set()).add(match[2])
    for number, names in saved.items():
        if names != kept:
            raise _unfit(where, f"optimiser.{number}: has no {', '.join(sorted(kept - names))}")


def memories_of(method: Method) -> dict[str, Memory]:
    """Return a method's memories by dotted name."""
    return {name: module for name, module in method.named_modules() if isinstance(module, Memory)}


def _check_memories(tensors: Mapping[str, Tensor], learner: Learner, where: str) -> None:
    """Refuse memories if a name, a shape or a value does not fit the method."""
    memories, known = memories_of(learner.method), learner.method.state_dict()
    for name, tensor in tensors.items():
        if not name.startswith("method."):
            continue
        owner, _, leaf = name.removeprefix("method.").rpartition(".")
        if owner in memories:
            if not memories[owner].fits(leaf, tensor):
                raise _unfit(where, f"{shown(name, quoted=False)}: does not fit the method's memory")
        elif name.removeprefix("method.") not in known:
            raise _unfit(where, f"{shown(name, quoted=False)}: is not a weight of the method")


def _check_state(tensors: Mapping[str, Tensor], plain: CheckpointInfo, learner: Learner, where: str) -> None:
    config, images, dimension = learner.config, learner.schedule.images, learner.dimension
    if "state.labels" in tensors:
        check_labels(tensors["state.labels"], images, config.clusters, where)
        prototypes = _rows(tensors, "state.prototypes", dimension, where)
        if config.clusters is None and len(prototypes):
            raise _unfit(where, "state.prototypes: exist, but the number of clusters is unknown")
    if "state.streamed" in tensors:
        _check(tensors, "state.streamed", (images, dimension), torch.float32, where)


def _check_progress(tensors: Mapping[str, Tensor], plain: CheckpointInfo, learner: Learner, where: str) -> None:
    epochs, steps = learner.epochs, learner.schedule.steps
    if not epochs.start <= plain.epoch <= epochs.stop or plain.step > steps:
        raise _unfit(where, f"epoch {plain.epoch}, step {plain.step}: there are {epochs.stop} epochs of {steps} steps")
    if plain.measures is None:
        if plain.step:
            raise _unfit(where, f"it is at step {plain.step} of an epoch that has not started")
        return
    if plain.epoch == epochs.stop or "state.labels" not in tensors:
        raise _unfit(where, "it is in an epoch without clusters, or after the last")
    losses = {name.removeprefix("state.losses.") for name in tensors if name.startswith("state.losses.")}
    if losses != plain.counts.keys() or any(not 0 < count <= plain.step for count in plain.counts.values()):
        raise _unfit(where, "state.losses: do not match the steps")
    for name in losses:
        _check(tensors, f"state.losses.{name}", (steps,), torch.float32, where)


def _rows(tensors: Mapping[str, Tensor], name: str, dimension: int, where: str) -> Tensor:
    """Return rows of a dimension; without rows it may be any."""
    tensor = tensors.get(name)
    if tensor is None or ((len(tensor) if tensor.ndim else 1) and tuple(tensor.shape[1:]) != (dimension,)):
        raise _unfit(where, f"{name}: does not have the dimension {dimension}")
    return tensor


def _check(
    tensors: Mapping[str, Tensor], name: str, shape: tuple[int, ...], dtype: torch.dtype | None, where: str
) -> None:
    tensor = tensors.get(name)
    if tensor is None:
        raise _unfit(where, f"{name}: is missing")
    if tuple(tensor.shape) != shape or (dtype is not None and tensor.dtype != dtype):
        raise _unfit(where, f"{name}: is {tensor.dtype} {tuple(tensor.shape)}, not {dtype or ''} {shape}")


def _unfit(where: str, why: str) -> InputError:
    words = why.replace("torch.", "")
    return InputError(
        f"{where}: does not fit config.yaml ({words}): put the settings back, or start a new run elsewhere"
    )
