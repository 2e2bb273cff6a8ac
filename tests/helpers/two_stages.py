"""The two-stage method of docs/methods.md, registered under its name on import."""

import re
from pathlib import Path

from propos.config import REGISTERED

PAGE = Path(__file__).parents[2] / "docs" / "methods.md"
NAME = "neighbours-agree"
QUICK = {"method": NAME, "train__epochs": 4, "network__hidden": 32}


def _blocks():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


BLOCK = next(block for block in _blocks() if NAME in block)


def register():
    """Run the definitions of the documentation's script, without its training."""
    unregister()
    definitions, registration, _ = BLOCK.partition(f'register_method("{NAME}", NeighboursAgree)\n')
    exec(definitions + registration, {"__name__": NAME})


def unregister():
    REGISTERED.pop(NAME, None)
