"""Checkpoints: all that resuming needs, in one file whose name carries the hash of its content.

A checkpoint is written beside and renamed, so it is whole or absent; one that a disk damaged later no longer
matches its name, and the one before it, which is kept, is used.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from propos.distributed import bytes_from_first_process, collect, share
from propos.errors import InputError, RunFailed
from propos.outputs import Grouping
from propos.plain import parse_json
from propos.runs import RunFolder, read_history, write_atomically
from propos.training.expectation import Partition
from propos.training.learner import Learner, at_stage
from propos.training.progress import Progress
from propos.training.queue import Memory
from propos.training.restoring import check_checkpoint, check_plain
from propos.training.state import State, first_state

KEPT = 2
GROUPING = tuple(field.name for field in dataclasses.fields(Grouping))
NAME = re.compile(r"(\d{6})-([0-9a-f]{32})\.safetensors")


def save_checkpoint(run: RunFolder | None, learner: Learner, state: State) -> None:
    """Write a checkpoint and delete all but the one before it.

    All processes take part; only the one that has the run folder writes.
    """
    streamed = None if state.streamed is None else collect(state.streamed, learner.schedule.images)
    if run is None:
        return
    folder = run.path / "checkpoint"
    folder.mkdir(exist_ok=True)
    content = safetensors.torch.save(_tensors(learner, state, streamed), {"state": json.dumps(_plain(learner, state))})
    older = _checkpoints(folder)
    number = int(older[-1].name[:6]) + 1 if older else 1
    write_atomically(folder / f"{number:06d}-{_digest(content)}.safetensors", content)
    for path in older[: -KEPT + 1]:
        path.unlink()


def load_checkpoint(run: RunFolder | None, learner: Learner, progress: Progress) -> tuple[Learner, State]:
    """Return the learner and the state of the newest whole checkpoint; without any, the start of the run.

    The process that has the run folder reads it for all. The learner's network is the one given.
    """
    content = bytes_from_first_process(None if run is None else _newest(run.path / "checkpoint", progress))
    return (learner, first_state(learner)) if content is None else _restore(content, learner, run)


def _newest(folder: Path, progress: Progress) -> bytes | None:
    paths = _checkpoints(folder)
    for path in reversed(paths):
        content = path.read_bytes()
        if _digest(content) == path.name[7:39]:
            return content
        progress.warn(f"{path}: is damaged; going back to the checkpoint before it")
    if paths:
        raise RunFailed(f"{folder}: every checkpoint is damaged; start the run anew with another --out", "checkpoint")
    return None


def _checkpoints(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _tensors(learner: Learner, state: State, streamed: Tensor | None) -> dict[str, Tensor]:
    tensors = {f"network.{name}": tensor for name, tensor in learner.network.state_dict().items()}
    for place, parameter in enumerate(learner.network.trained()):
        for name, value in learner.kept(parameter).items():
            if isinstance(value, Tensor):
                tensors[f"optimiser.{place}.{name}"] = value
    if state.partition is not None:
        tensors |= _partition_tensors(state.partition)
    if streamed is not None:
        tensors["state.streamed"] = streamed
    if state.queue is not None:
        tensors |= {"state.queue.embeddings": state.queue.embeddings, "state.queue.images": state.queue.images}
    if state.bank is not None:
        tensors["state.bank"] = state.bank
    if state.placed is not None:
        tensors["state.placed"] = state.placed
    tensors |= {f"state.prepared.{name}": rows for name, rows in state.prepared.items()}
    if state.losses is not None:
        tensors["state.losses"] = state.losses
    return {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}


def _plain(learner: Learner, state: State) -> dict[str, Any]:
    return {
        "stage": state.stage,
        "epoch": state.epoch,
        "step": state.step,
        "opening": state.opening,
        "seconds": state.seconds,
        "scaler": learner.scaler.state_dict(),
        "queue_next": None if state.queue is None else state.queue.next,
    }


def _partition_tensors(partition: Partition) -> dict[str, Tensor]:
    tensors = {"state.labels": partition.labels, "state.prototypes": partition.prototypes}
    for place, grouping in enumerate(partition.groupings):
        for name in GROUPING:
            tensors[f"state.grouping.{place}.{name}"] = getattr(grouping, name)
    return tensors


def _partition(tensors: dict[str, Tensor]) -> Partition | None:
    if "state.labels" not in tensors:
        return None
    groupings: list[Grouping] = []
    while f"state.grouping.{len(groupings)}.labels" in tensors:
        groupings.append(Grouping(*(tensors[f"state.grouping.{len(groupings)}.{name}"] for name in GROUPING)))
    return Partition(tensors["state.labels"], tensors["state.prototypes"], tuple(groupings))


def _restore(content: bytes, learner: Learner, run: RunFolder | None) -> tuple[Learner, State]:
    where = "the checkpoint" if run is None else str(run.path / "checkpoint")
    tensors, values = _unpacked(content, where)
    plain = check_plain(values, learner, where)
    learner = at_stage(learner, plain.stage)
    check_checkpoint(tensors, plain, learner, where)
    tensors = {name: tensor.to(learner.device) for name, tensor in tensors.items()}
    streamed = tensors.get("state.streamed")
    with torch.no_grad():
        for name, tensor in learner.network.state_dict().items():
            tensor.copy_(tensors[f"network.{name}"])
    _restore_optimiser(learner, tensors)
    learner.scaler.load_state_dict(plain.scaler)
    state = State(
        stage=plain.stage,
        epoch=plain.epoch,
        step=plain.step,
        opening=plain.opening,
        seconds=plain.seconds,
        partition=_partition(tensors),
        streamed=None if streamed is None else streamed[share(len(streamed))].clone(),
        queue=_queue(tensors, plain.queue_next),
        bank=tensors.get("state.bank"),
        placed=tensors.get("state.placed"),
        prepared={name[15:]: rows for name, rows in tensors.items() if name.startswith("state.prepared.")},
        losses=tensors.get("state.losses"),
        # The history is written before the checkpoint; lines of epochs that will be done again are dropped.
        history=[] if run is None else read_history(run.path)[: plain.epoch],
    )
    return learner, state


def _unpacked(content: bytes, where: str) -> tuple[dict[str, Tensor], Any]:
    try:
        tensors = safetensors.torch.load(content)
        # The header of a safetensors file: its length in eight bytes, then JSON.
        header = parse_json(content[8 : 8 + int.from_bytes(content[:8], "little")].decode(), where)
        return tensors, parse_json(header["__metadata__"]["state"], where)
    except (safetensors.SafetensorError, UnicodeDecodeError, KeyError, TypeError):
        raise InputError(f"{where}: its newest file is no checkpoint: delete it to go back to the one before") from None


def _restore_optimiser(learner: Learner, tensors: dict[str, Tensor]) -> None:
    saved: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimiser."):
            _, place, name = key.split(".")
            saved.setdefault(int(place), {})[name] = tensor
    for number, parameter in enumerate(learner.network.trained()):
        for name, tensor in saved.get(number, {}).items():
            if tensor.shape == parameter.shape:
                # In the parameter's own memory format, which fused optimisers take for granted.
                tensor = torch.empty_like(parameter, requires_grad=False).copy_(tensor)
            learner.kept(parameter)[name] = tensor


def _queue(tensors: dict[str, Tensor], following: int | None) -> Memory | None:
    if following is None:
        return None
    return Memory(tensors["state.queue.embeddings"], tensors["state.queue.images"], following)
