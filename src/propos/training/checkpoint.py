"""Checkpoints: all that resuming needs, in one file whose name carries the hash of its content.

A checkpoint is written beside and renamed, so it is whole or absent; one that a disk damaged later no longer
matches its name, and the one before it, which is kept, is used.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from propos.errors import RunFailed
from propos.runs import RunFolder, write_atomically
from propos.training.expectation import Partition
from propos.training.learner import Learner
from propos.training.progress import Progress
from propos.training.state import State

KEPT = 2
NAME = re.compile(r"(\d{6})-([0-9a-f]{32})\.safetensors")


def save_checkpoint(run: RunFolder, learner: Learner, state: State) -> None:
    """Write a checkpoint and delete all but the one before it."""
    folder = run.path / "checkpoint"
    folder.mkdir(exist_ok=True)
    content = safetensors.torch.save(_tensors(learner, state), {"state": json.dumps(_plain(learner, state))})
    older = _checkpoints(folder)
    number = int(older[-1].name[:6]) + 1 if older else 1
    write_atomically(folder / f"{number:06d}-{_digest(content)}.safetensors", content)
    for path in older[: -KEPT + 1]:
        path.unlink()


def load_checkpoint(run: RunFolder, learner: Learner, progress: Progress) -> State:
    """Put the newest whole checkpoint into the learner and return its state; without any, the start of the run."""
    folder = run.path / "checkpoint"
    paths = _checkpoints(folder)
    for path in reversed(paths):
        content = path.read_bytes()
        if _digest(content) == path.name[7:39]:
            return _restore(path, content, learner, run)
        progress.warn(f"{path}: is damaged; going back to the checkpoint before it")
    if paths:
        raise RunFailed(f"{folder}: every checkpoint is damaged; start the run anew with another --out")
    return State()


def _checkpoints(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _tensors(learner: Learner, state: State) -> dict[str, Tensor]:
    tensors = {f"network.{name}": tensor for name, tensor in learner.network.state_dict().items()}
    for place, parameter in enumerate(learner.network.trained()):
        buffer = learner.optimiser.state[parameter].get("momentum_buffer")
        if buffer is not None:
            tensors[f"momentum.{place}"] = buffer
    if state.partition is not None:
        tensors |= {"state.labels": state.partition.labels, "state.prototypes": state.partition.prototypes}
    if state.streamed is not None:
        tensors["state.streamed"] = state.streamed
    if state.losses is not None:
        tensors["state.losses"] = state.losses
    return {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}


def _plain(learner: Learner, state: State) -> dict[str, Any]:
    return {
        "epoch": state.epoch,
        "step": state.step,
        "opening": state.opening,
        "seconds": state.seconds,
        "scaler": learner.scaler.state_dict(),
    }


def _restore(path: Path, content: bytes, learner: Learner, run: RunFolder) -> State:
    tensors = {name: tensor.to(learner.device) for name, tensor in safetensors.torch.load(content).items()}
    with safetensors.safe_open(path, framework="pt") as file:
        plain = json.loads(file.metadata()["state"])
    with torch.no_grad():
        for name, tensor in learner.network.state_dict().items():
            tensor.copy_(tensors[f"network.{name}"])
    for place, parameter in enumerate(learner.network.trained()):
        if f"momentum.{place}" in tensors:
            # In the parameter's own memory format, which the fused optimiser takes for granted.
            buffer = torch.empty_like(parameter, requires_grad=False).copy_(tensors[f"momentum.{place}"])
            learner.optimiser.state[parameter]["momentum_buffer"] = buffer
    learner.scaler.load_state_dict(plain["scaler"])
    return State(
        epoch=plain["epoch"],
        step=plain["step"],
        opening=plain["opening"],
        seconds=plain["seconds"],
        partition=Partition(tensors["state.labels"], tensors["state.prototypes"])
        if "state.labels" in tensors
        else None,
        streamed=tensors.get("state.streamed"),
        losses=tensors.get("state.losses"),
        # The history is written before the checkpoint; lines of epochs that will be done again are dropped.
        history=run.history()[: plain["epoch"]],
    )
