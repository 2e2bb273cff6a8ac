"""Checkpoints: everything that resuming needs, in one file whose name contains the hash of its content.

A checkpoint is written from a copy, on a thread, to a temporary file that is then renamed: it is complete or absent. If
a file was damaged later, its content no longer matches its name, and the previous checkpoint, which is kept, is used.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from propos.common.errors import InputError, RunFailed
from propos.common.plain import parse_json
from propos.distributed import broadcast_bytes, gather_on_first, share
from propos.methods import Method
from propos.runs import RunFolder, read_history, write_atomically
from propos.training.checkpoint_validation import check_checkpoint, check_info, memories_of
from propos.training.e_step import Partition
from propos.training.learner import Learner, at_stage, trained_parameters
from propos.training.progress import Progress
from propos.training.state import State, first_state

KEPT = 2
NAME = re.compile(r"(\d{6})-([0-9a-f]{32})\.safetensors")


class CheckpointWriter:
    """Writes the checkpoints of a run on a thread, one after another, while training continues.

    All processes take part in saving; only the one that has the run folder writes.
    """

    def __init__(self, run: RunFolder | None) -> None:
        self._run = run
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="propos-checkpoint")
        self._writing: Future[None] | None = None

    def save(self, learner: Learner, state: State) -> None:
        """Copy the present state and start to write it, once the checkpoint before it is written."""
        streamed = None if state.streamed is None else gather_on_first(state.streamed, learner.schedule.images)
        if self._run is None:
            return
        self.wait()
        copied, plain = _copied(_tensors(learner, state, streamed)), json.dumps(_plain(learner, state))
        self._writing = self._thread.submit(_write, self._run.path / "checkpoint", copied, plain)

    def check(self) -> None:
        """Raise the error of a checkpoint that could not be written, without waiting for one that is being written."""
        if self._writing is not None and self._writing.done():
            self.wait()

    def wait(self) -> None:
        """Wait until the last checkpoint is written; raise the error if it could not be."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def close(self) -> None:
        """Wait until nothing is being written; errors that nobody waited for are dropped."""
        self._thread.shutdown()


def _write(folder: Path, tensors: dict[str, Tensor], plain: str) -> None:
    """Write a checkpoint and delete all but the one before it."""
    folder.mkdir(exist_ok=True)
    content = safetensors.torch.save(tensors, {"state": plain})
    older = _checkpoints(folder)
    number = int(older[-1].name[:6]) + 1 if older else 1
    write_atomically(folder / f"{number:06d}-{_digest(content)}.safetensors", content)
    for path in older[: -KEPT + 1]:
        path.unlink()


def load_checkpoint(run: RunFolder | None, learner: Learner, progress: Progress) -> tuple[Learner, State]:
    """Return the learner and the state of the newest intact checkpoint; without any, the start of the run.

    The process that has the run folder reads it for all. The learner's network is the one given.
    """
    content = broadcast_bytes(None if run is None else _newest(run.path / "checkpoint", progress))
    return (learner, first_state(learner)) if content is None else _restore(content, learner, run)


def _newest(folder: Path, progress: Progress) -> bytes | None:
    paths = _checkpoints(folder)
    for path in reversed(paths):
        content = path.read_bytes()
        if _digest(content) == path.name[7:39]:
            return content
        progress.warn(f"{path}: is damaged; using the previous checkpoint")
    if paths:
        raise RunFailed(f"{folder}: every checkpoint is damaged; start a new run with another --out", "checkpoint")
    return None


def _checkpoints(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _tensors(learner: Learner, state: State, streamed: Tensor | None) -> dict[str, Tensor]:
    tensors = {f"method.{name}": tensor for name, tensor in learner.method.state_dict().items()}
    for place, parameter in enumerate(trained_parameters(learner.method)):
        for name, value in learner.optimiser_state(parameter).items():
            if isinstance(value, Tensor):
                tensors[f"optimiser.{place}.{name}"] = value
    if state.partition is not None:
        tensors |= {"state.labels": state.partition.labels, "state.prototypes": state.partition.prototypes}
    if streamed is not None:
        tensors["state.streamed"] = streamed
    tensors |= {f"state.losses.{name}": losses for name, losses in state.losses.items()}
    return tensors


def _copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copy tensors to memory of the host that training does not change."""
    host = torch.device("cpu")
    return {
        name: tensor.detach().to(host, copy=True, memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }


def _plain(learner: Learner, state: State) -> dict[str, Any]:
    return {
        "method": learner.config.method,
        "stage": state.stage,
        "epoch": state.epoch,
        "step": state.step,
        "measures": state.measures,
        "counts": state.counts,
        "seconds": state.seconds,
        "scaler": learner.scaler.state_dict(),
    }


def _restore(content: bytes, learner: Learner, run: RunFolder | None) -> tuple[Learner, State]:
    where = "the checkpoint" if run is None else str(run.path / "checkpoint")
    tensors, values = _unpacked(content, where)
    plain = check_info(values, learner, where)
    learner = at_stage(learner, plain.stage)
    check_checkpoint(tensors, plain, learner, where)
    tensors = {name: tensor.to(learner.device) for name, tensor in tensors.items()}
    streamed = tensors.get("state.streamed")
    restore_method(learner.method, _of_prefix(tensors, "method."))
    _restore_optimiser(learner, tensors)
    learner.scaler.load_state_dict(plain.scaler)
    labels, prototypes = tensors.get("state.labels"), tensors.get("state.prototypes")
    state = State(
        stage=plain.stage,
        epoch=plain.epoch,
        step=plain.step,
        measures=plain.measures,
        partition=None if labels is None or prototypes is None else Partition(labels, prototypes),
        streamed=None if streamed is None else streamed[share(len(streamed))].clone(),
        losses={name: tensors[f"state.losses.{name}"] for name in plain.counts},  # in their original order
        counts=plain.counts,
        seconds=plain.seconds,
        # The history is written before the checkpoint; lines of epochs that will be trained again are dropped.
        history=[] if run is None else read_history(run.path)[: plain.epoch],
    )
    return learner, state


def restore_method(method: Method, tensors: Mapping[str, Tensor]) -> None:
    """Copy weights and buffers into a method; tables that a memory does not have yet are added to it."""
    memories = memories_of(method)
    with torch.no_grad():
        for name, tensor in tensors.items():
            owner, _, leaf = name.rpartition(".")
            if owner in memories and leaf not in memories[owner]:
                memories[owner][leaf] = tensor
        for name, tensor in method.state_dict().items():
            tensor.copy_(tensors[name])


def _of_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _unpacked(content: bytes, where: str) -> tuple[dict[str, Tensor], Any]:
    try:
        tensors = safetensors.torch.load(content)
        # The header of a safetensors file: its length in eight bytes, then JSON.
        header = parse_json(content[8 : 8 + int.from_bytes(content[:8], "little")].decode(), where)
        return tensors, parse_json(header["__metadata__"]["state"], where)
    except (safetensors.SafetensorError, UnicodeDecodeError, KeyError, TypeError):
        raise InputError(f"{where}: its newest file is not a checkpoint: delete it to use the previous one") from None


def _restore_optimiser(learner: Learner, tensors: dict[str, Tensor]) -> None:
    saved: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimiser."):
            _, place, name = key.split(".")
            saved.setdefault(int(place), {})[name] = tensor
    for number, parameter in enumerate(trained_parameters(learner.method)):
        for name, tensor in saved.get(number, {}).items():
            if tensor.shape == parameter.shape:
                # In the parameter's own memory format, which fused optimisers require.
                tensor = torch.empty_like(parameter, requires_grad=False).copy_(tensor)
            learner.optimiser_state(parameter)[name] = tensor
