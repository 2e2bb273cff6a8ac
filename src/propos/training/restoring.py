"""Whether a checkpoint holds what the settings want: its hash says only that it is as it was written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from propos.errors import InputError, shown
from propos.runs import Measures
from propos.training.learner import Learner

OPTIMISER = re.compile(r"optimiser\.(\d{1,6})\.(\w+)")
_ADAM = {"step", "exp_avg", "exp_avg_sq"}
KEPT = {"sgd": {"momentum_buffer"}, "lars": {"momentum_buffer"}, "adam": _ADAM, "adamw": _ADAM}
Whole = Annotated[int, Field(ge=0)]
Number = Annotated[float, Field(allow_inf_nan=False)]


def _measured(opening: dict[str, Any] | None) -> dict[str, Any] | None:
    """Check what the E-step that opened the epoch measured; an epoch that none opened has nothing."""
    if opening:
        Measures.model_validate(opening)
    return opening


class Plain(BaseModel):
    """What a checkpoint holds beside tensors."""

    model_config = ConfigDict(extra="allow", strict=True)

    stage: Whole
    epoch: Whole
    step: Whole
    opening: Annotated[dict[str, Any] | None, AfterValidator(_measured)]
    seconds: dict[str, Number]
    scaler: dict[str, int | Number]
    queue_next: Whole | None


def check_plain(plain: Any, learner: Learner, where: str) -> Plain:
    """Refuse what does not say where a run stands, or names a stage that the method has not."""
    try:
        found = Plain.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise _unfit(where, f"{shown(key, quoted=False)}: {first['msg']}") from None
    if found.stage >= len(learner.method.stages):
        raise _unfit(where, f"stage: it stands in stage {found.stage} of {len(learner.method.stages)}")
    return found


def check_checkpoint(tensors: Mapping[str, Tensor], plain: Plain, learner: Learner, where: str) -> None:
    """Refuse a checkpoint that the settings' network could not have written in the learner's stage."""
    for name, tensor in learner.network.state_dict().items():
        _check(tensors, f"network.{name}", tuple(tensor.shape), tensor.dtype, where)
    _check_optimiser(tensors, learner, where)
    _check_state(tensors, plain, learner, where)
    kinds = [{key: type(value) for key, value in each.items()} for each in (plain.scaler, learner.scaler.state_dict())]
    if learner.scaler.is_enabled() and kinds[0] != kinds[1]:
        raise _unfit(where, "scaler: is not that of half precision")
    _check_prepared(tensors, learner, where)
    _check_progress(tensors, plain, learner, where)


def check_labels(labels: Tensor, images: int, clusters: int | None, where: str) -> None:
    """Refuse labels that are not one an image, each a cluster's or -1."""
    _check({"labels": labels}, "labels", (images,), torch.int64, where)
    if len(labels) and (int(labels.min()) < -1 or (clusters is not None and int(labels.max()) >= clusters)):
        raise _unfit(where, f"labels: are not of {clusters} clusters")


def _check_optimiser(tensors: Mapping[str, Tensor], learner: Learner, where: str) -> None:
    trained, kept = learner.network.trained(), KEPT[learner.schedule.settings.optimiser]
    saved: dict[int, set[str]] = {}
    for name in tensors:
        if not name.startswith("optimiser."):
            continue
        match = OPTIMISER.fullmatch(name)
        if match is None or int(match[1]) >= len(trained) or match[2] not in kept:
            raise _unfit(where, f"{shown(name, quoted=False)}: is not the optimiser's")
        parameter = trained[int(match[1])]
        _check(tensors, name, () if match[2] == "step" else tuple(parameter.shape), parameter.dtype, where)
        saved.setdefault(int(match[1]), set()).add(match[2])
    for number, names in saved.items():
        if names != kept:
            raise _unfit(where, f"optimiser.{number}: has no {', '.join(sorted(kept - names))}")


def _check_state(tensors: Mapping[str, Tensor], plain: Plain, learner: Learner, where: str) -> None:
    config, images = learner.config, learner.schedule.images
    dimension, spec = learner.dimension, learner.stage.queue
    if "state.labels" in tensors:
        check_labels(tensors["state.labels"], images, config.clusters, where)
        prototypes = _rows(tensors, "state.prototypes", dimension, where)
        if config.clusters is None and len(prototypes):
            raise _unfit(where, "state.prototypes: there are some, and no number of clusters is known")
        _check_groupings(tensors, learner, where)
    if "state.streamed" in tensors:
        _check(tensors, "state.streamed", (images, dimension), torch.float32, where)
    if learner.stage.bank is not None:
        _check(tensors, "state.bank", (sum(learner.images[:2]), dimension), torch.float32, where)
    if learner.centres is not None:
        _check_placed(tensors, learner.centres.sets.sizes, sum(learner.images[:2]), where)
    if (spec is None) != (plain.queue_next is None):
        raise _unfit(where, "queue_next: the method's queue is another")
    if spec is not None and plain.queue_next is not None:
        _check(tensors, "state.queue.embeddings", (spec.size, dimension), torch.float32, where)
        _check(tensors, "state.queue.images", (spec.size,), torch.int64, where)
        if plain.queue_next >= spec.size:
            raise _unfit(where, f"queue_next: {plain.queue_next} lies behind the queue's {spec.size} places")


def _check_placed(tensors: Mapping[str, Tensor], sizes: tuple[int, ...], images: int, where: str) -> None:
    """Refuse centres of images that the sets have not."""
    _check(tensors, "state.placed", (images, len(sizes)), torch.int64, where)
    for size, labels in zip(sizes, tensors["state.placed"].unbind(dim=1), strict=True):
        check_labels(labels, images, size, where)


def _check_groupings(tensors: Mapping[str, Tensor], learner: Learner, where: str) -> None:
    names = {name for name in tensors if name.startswith("state.grouping.")}
    if not names:
        return
    images, dimension = learner.schedule.images, learner.dimension
    further = () if learner.stage.further is None else learner.stage.further.numbers(images)
    for place, clusters in enumerate(further):
        prefix = f"state.grouping.{place}"
        _check(tensors, f"{prefix}.labels", (images,), torch.int64, where)
        check_labels(tensors[f"{prefix}.labels"], images, clusters, where)
        _check(tensors, f"{prefix}.prototypes", (clusters, dimension), torch.float32, where)
        _check(tensors, f"{prefix}.concentrations", (clusters,), None, where)
    if len(names) != 3 * len(further):
        raise _unfit(where, "state.grouping: the stage has other further clusterings")


def _check_prepared(tensors: Mapping[str, Tensor], learner: Learner, where: str) -> None:
    """Refuse tables that have not a row for each image; what is missing is computed again."""
    images = learner.schedule.images
    for name, table in tensors.items():
        if name.startswith("state.prepared.") and (table.ndim == 0 or len(table) != images):
            raise _unfit(where, f"{name}: has not a row for each of {images} images")
    if "state.prepared.labels" in tensors:
        check_labels(tensors["state.prepared.labels"], images, learner.config.clusters, where)
    neighbours = tensors.get("state.prepared.neighbours")
    if neighbours is None:
        return
    if neighbours.ndim != 2 or neighbours.dtype != torch.int64 or not neighbours.numel():
        raise _unfit(where, "state.prepared.neighbours: are no images")
    if int(neighbours.min()) < 0 or int(neighbours.max()) >= images:
        raise _unfit(where, f"state.prepared.neighbours: name others than the {images} images")


def _check_progress(tensors: Mapping[str, Tensor], plain: Plain, learner: Learner, where: str) -> None:
    epochs, steps = learner.epochs, learner.schedule.steps
    if not epochs.start <= plain.epoch <= epochs.stop or plain.step > steps:
        raise _unfit(where, f"epoch {plain.epoch}, step {plain.step}: there are {epochs.stop} epochs of {steps} steps")
    if plain.opening is None:
        if plain.step:
            raise _unfit(where, f"it stands at step {plain.step} of an epoch that was not opened")
        return
    if plain.epoch == epochs.stop or "state.labels" not in tensors:
        raise _unfit(where, "it stands in an epoch that has no clusters, or is past the last")
    _check(tensors, "state.losses", (steps, learner.columns), torch.float32, where)


def _rows(tensors: Mapping[str, Tensor], name: str, dimension: int, where: str) -> Tensor:
    """Return some rows of a dimension; none may be of any."""
    tensor = tensors.get(name)
    if tensor is None or ((len(tensor) if tensor.ndim else 1) and tuple(tensor.shape[1:]) != (dimension,)):
        raise _unfit(where, f"{name}: has not the dimension {dimension}")
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
    return InputError(f"{where}: does not fit config.yaml ({words}): put the settings back, or start anew elsewhere")
