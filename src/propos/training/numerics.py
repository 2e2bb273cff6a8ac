"""How torch computes while a run trains: which of its algorithms it may take."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.backends import cudnn

from propos.config import TrainSettings

CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
CUBLAS_REPEATS = ":4096:8"  # with this much memory of its own cuBLAS adds up in one order


def usual_precision(device: torch.device) -> str:
    """Return what the backbone of a recipe computes in on a device: half precision where it makes a GPU faster."""
    if device.type != "cuda":
        return "float32"
    return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"


@contextmanager
def numerics(settings: TrainSettings) -> Iterator[None]:
    """Have torch take, for as long as the block runs, its fastest algorithms or those that repeat to the bit.

    Convolutions may round to TF32. Other products may not: they are those of heads, losses and k-means.
    """
    repeats = settings.deterministic
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    flags = cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32
    if repeats:
        os.environ.setdefault(CUBLAS, CUBLAS_REPEATS)
        torch.use_deterministic_algorithms(True)
    cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32 = not repeats, repeats, not repeats
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32 = flags
        if repeats:  # which loads torch's compiler: not for nothing
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
