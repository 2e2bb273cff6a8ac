"""Numbers in the environment, as torchrun and schedulers set them."""

from __future__ import annotations

import os
import re

from propos.common.errors import InputError

LARGEST = 1_000_000  # of processes, or of restarts


def whole_number(name: str, default: int, lowest: int, highest: int = LARGEST) -> int:
    """Return the integer in an environment variable; refuse one that is out of range."""
    text = os.environ.get(name)
    if text is None:
        return default
    if re.fullmatch(r"\d{1,7}", text.strip(), flags=re.ASCII) and lowest <= int(text) <= highest:
        return int(text)
    raise InputError(
        f"the environment has {name}={text[:40]}, where torchrun writes a number from {lowest} to {highest}: unset it"
    )
