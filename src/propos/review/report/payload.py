"""The data script of the page: a classic script that assigns one global, with arrays as base64.

A page opened from a file may not fetch anything, but it may run a script in its folder.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Shaped

GLOBAL = "PROPOS_REPORT"
LARGE = 16_000_000  # letters of an array that gets a script of its own
UNIT = 65_535  # numbers from 0 to 1 travel as 16 bits


def packed(array: Shaped[np.ndarray, ...], kind: str) -> dict[str, str]:
    """Return an array as text: u8, u16, i32 or unit (0 … 1 in 16 bits), little-endian."""
    types = {"u8": "<u1", "u16": "<u2", "i32": "<i4", "unit": "<u2"}
    if kind == "unit":
        array = np.rint(np.clip(array, 0.0, 1.0) * UNIT)
    return {
        "kind": kind,
        "base64": base64.b64encode(np.ascontiguousarray(array).astype(types[kind]).tobytes()).decode(),
    }


def script(data: Mapping[str, Any]) -> bytes:
    """Return the data as a script."""
    text = json.dumps(data, default=_plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Names that are not valid text contain lone surrogates, which JavaScript reads as escapes.
    return f"window.{GLOBAL}={text};\n".encode(errors="backslashreplace")


def move_out(data: Mapping[str, Any], place: str = "") -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the data with each large array replaced by the name of its script, and these scripts by name.

    A browser reads the data at once; millions of images are more than it can parse.
    """
    kept: dict[str, Any] = {}
    scripts: dict[str, bytes] = {}
    for key, value in data.items():
        kept[key] = value
        name = f"{place}{key}"
        if isinstance(value, Mapping) and value.keys() == {"kind", "base64"}:
            if len(value["base64"]) > LARGE:
                kept[key] = {"kind": value["kind"], "file": f"part-{name}.js"}
                scripts[f"part-{name}.js"] = f'window.PROPOS_PART="{value["base64"]}";\n'.encode()
        elif isinstance(value, Mapping):
            kept[key], more = move_out(value, f"{name}-")
            scripts |= more
    return kept, scripts


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, np.integer | np.floating):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be handed to the page")
