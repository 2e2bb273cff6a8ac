"""Numbers that torchrun, or a scheduler that speaks as it does, leaves in the environment."""

from __future__ import annotations

import os
import re

from propos.common.errors import InputError

LARGEST = 1_000_000  # of processes, or of restarts


def whole_number(name: str, default: int, lowest: int, highest: int = LARGEST) -> int:
    """Return what an environment variable says, or say that it cannot be meant."""
    text = os.environ.get(name)
    if text is None:
        return default
    if re.fullmatch(r"\d{1,7}", text.strip(), flags=re.ASCII) and lowest <= int(text) <= highest:
        return int(text)
    raise InputError(
        f"the environment has {name}={text[:40]}, where torchrun writes a number from {lowest} to {highest}: unset it"
    )
