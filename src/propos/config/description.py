"""The description of a network of the Hugging Face hub, which a run keeps in its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from propos.common.errors import InputError, shown
from propos.common.plain import parse_json

Filter = Literal["bilinear", "bicubic"]
LARGEST_SIDE = 1024  # pixels of an input


@dataclass(frozen=True)
class Preparation:
    """The preprocessing of images for a network, as its processor states it."""

    side: int  # of its input
    short: int | None  # the shorter side before the middle is cut out; None: the whole image becomes a square
    mean: tuple[float, ...]
    std: tuple[float, ...]
    resample: Filter

    @classmethod
    def checked(cls, given: Mapping[str, Any], where: str) -> Preparation:
        """Return what a processor's file or the settings state, or refuse it."""
        sides = [given["side"]] if given["short"] is None else [given["side"], given["short"]]
        if not all(isinstance(each, int) and 1 <= each <= LARGEST_SIDE for each in sides) or sides[-1] < sides[0]:
            raise InputError(f"{where}: inputs of {shown(sides[-1])} pixels are not from 1 to {LARGEST_SIDE}")
        mean, std = (tuple(float(each) for each in given[key]) for key in ("mean", "std"))
        if (len(mean), len(std)) != (3, 3) or not all(-1e3 < each < 1e3 for each in mean + std):
            raise InputError(f"{where}: image_mean and image_std are not three numbers each")
        if min(std) <= 0 or given["resample"] not in ("bilinear", "bicubic"):
            raise InputError(f"{where}: image_std is not above zero, or resample is neither bilinear nor bicubic")
        return cls(given["side"], given["short"], mean, std, given["resample"])


@dataclass(frozen=True)
class Description:
    """All that building a network of the hub and preparing its inputs needs."""

    kind: str
    architecture: Mapping[str, Any]
    preparation: Preparation
    trained_on: str
    licence: str

    def to_json(self) -> str:
        """Return the description as text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str, name: str) -> Description:
        """Read a description from settings, which may be another person's."""
        where = f"start.description of {name}"
        given = parse_json(text, where)
        try:
            architecture = {str(key): value for key, value in given["architecture"].items()}
            preparation = Preparation.checked(given["preparation"], where)
            return cls(str(given["kind"]), architecture, preparation, str(given["trained_on"]), str(given["licence"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{where}: is damaged ({type(error).__name__}: {shown(error, quoted=False)})") from None
