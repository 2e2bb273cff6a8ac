"""Generators of random draws, seeded by the run's seed, the purpose and the step.

No generator lives longer than a step, so there is no state to save, resuming is exact, and a draw does
not depend on what was drawn before it. All draws are made on the CPU, so they do not depend on the device.
"""

from __future__ import annotations

import hashlib

import torch


def derive(seed: int, *purpose: str | int) -> int:
    """Return a seed for one purpose within a run."""
    text = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


def generator(seed: int, *purpose: str | int) -> torch.Generator:
    """Return a fresh generator for one purpose within a run."""
    return torch.Generator().manual_seed(derive(seed, *purpose))
