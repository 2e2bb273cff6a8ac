"""CIFAR's batch files, which are pickles, read without doing anything a pickle asks for.

A pickle may name any function and have it called. Here no name is ever looked up: the few that an array of bytes needs
stand for objects of our own, which only collect its shape and its bytes, and every other name is refused.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from propos.common.errors import InputError


def read_pickle(path: Path) -> dict[str, Any]:
    """Read a pickled dictionary of plain values and arrays of bytes; keys come as text."""
    try:
        with path.open("rb") as file:
            content = _Reader(file, encoding="bytes").load()
        if not isinstance(content, dict):
            raise pickle.UnpicklingError("not a dictionary")
        return {_text(key): value.values if isinstance(value, _Array) else value for key, value in content.items()}
    except FileNotFoundError:
        raise
    except Exception as error:  # a file from elsewhere may make the reader raise anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{path}: is refused: not a CIFAR batch file: {reason}") from None


class _Array:
    """Stands for an array of bytes while it is read."""

    __slots__ = ("values",)
    values: UInt8[np.ndarray, ...]

    def __setstate__(self, state: tuple[int, tuple[int, ...], object, bool, bytes]) -> None:
        _, shape, kind, by_columns, content = state
        if not isinstance(kind, _Bytes):
            raise pickle.UnpicklingError("an array has no type")
        self.values = np.frombuffer(content, np.uint8).reshape(shape, order="F" if by_columns else "C")


class _Bytes:
    """Stands for numpy's type of bytes, the only one admitted."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        """Accept the state of a bytes type, which has no byte order or fields."""


class _Name:
    """Stands for a name that a pickle may call; it cannot be given attributes."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., object]) -> None:
        self._call = call

    def __call__(self, *arguments: object) -> object:
        return self._call(*arguments)

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("it changes a name it calls")


def _new_array(kind: object, shape: object, letter: object) -> _Array:
    return _Array()


def _array_itself(*_: object) -> object:
    raise pickle.UnpicklingError("it calls numpy.ndarray")


def _type(name: str | bytes, *_: object) -> _Bytes:
    if _text(name) not in ("u1", "|u1"):
        raise pickle.UnpicklingError(f"an array holds {_text(name)[:20]!r}, not bytes")
    return _Bytes()


def _encode(text: str, encoding: str | bytes) -> bytes:
    """Python 3 writes bytes so where Python 2 should read them."""
    if _text(encoding) not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"it asks for the encoding {_text(encoding)[:20]!r}")
    return text.encode("latin-1")


_ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _Name(_new_array),
    ("numpy._core.multiarray", "_reconstruct"): _Name(_new_array),
    ("numpy", "ndarray"): _Name(_array_itself),
    ("numpy", "dtype"): _Name(_type),
    ("_codecs", "encode"): _Name(_encode),
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> _Name:
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module[:80]}.{name[:80]}")
        return _ADMITTED[module, name]


def _text(value: str | bytes) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if not isinstance(value, str):
        raise pickle.UnpicklingError(f"it has {type(value).__name__} instead of a name")
    return value
