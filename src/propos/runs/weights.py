"""Weights of networks in safetensors files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from propos.common.errors import InputError, shown

TYPES = {"F32": "float32", "I64": "int64"}  # of weights and buffers, and of batch norm's counters


def check_weights(path: Path) -> None:
    """Refuse a file whose header is damaged or names other types than networks have."""
    try:
        with safetensors.safe_open(path, "numpy") as file:
            kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 - no mapping
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(f"{path}: cannot be read: {_words(error)}") from None
    for name, kind in kinds.items():
        if kind not in TYPES:
            raise InputError(f"{path}: {shown(name, quoted=False)} holds {kind}; weights are {' or '.join(TYPES)}")


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Read weights that are all finite."""
    check_weights(path)
    try:
        weights: dict[str, np.ndarray] = safetensors.numpy.load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(f"{path}: cannot be read: {_words(error)}") from None
    for name, array in weights.items():
        if not np.isfinite(array).all():
            raise InputError(f"{path}: {shown(name, quoted=False)} holds NaN or infinity")
    return weights


def _words(error: Exception) -> str:
    return shown(" ".join(str(error).split()), quoted=False)
