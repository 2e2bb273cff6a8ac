"""The algorithms that torch may use during training: fast or deterministic ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.backends import cudnn

from propos.config import TrainSettings

CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
CUBLAS_REPEATS = ":4096:8"  # with a fixed workspace cuBLAS is deterministic


def default_precision(device: torch.device) -> str:
    """Return the default precision of a backbone on a device: half precision on GPUs that are faster with it."""
    if device.type != "cuda":
        return "float32"
    return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"


@contextmanager
def numerics(settings: TrainSettings) -> Iterator[None]:
    """Use torch's fastest algorithms within the block, or deterministic ones.

    Convolutions may use TF32. Other matrix products may not: they belong to heads, losses and k-means.
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
        if repeats:  # only then, since it loads torch's compiler
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
