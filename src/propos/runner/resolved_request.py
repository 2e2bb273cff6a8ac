"""The first step of planning: settle what a request says, and find its source, before any pixel is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from propos.common.errors import InputError
from propos.config import Config, PixelSettings
from propos.data import UnopenedSource, What, find_source, is_array
from propos.methods import check_method
from propos.runner.progress import Reporter
from propos.runner.request import Request, check_start, given_config, requested_settings
from propos.runs import Run
from propos.training import choose_device, continuation_config


@dataclass(frozen=True)
class ResolvedRequest:
    """A request, the settings that it names, and its source before any pixel is read."""

    request: Request
    device: torch.device
    what: What
    earlier: Run | None  # the finished run to continue
    given: Config | None  # complete settings: of --config, or of the earlier run
    asked: Mapping[str, Any]  # settings by dotted key: of options and --set
    known: Config  # both together, with defaults for the rest
    unopened: UnopenedSource


def resolve_request(request: Request, device: str, reporter: Reporter) -> ResolvedRequest:
    """Check a request, read the settings that it names, and find its source."""
    chosen = choose_device(device)
    check_start(request)
    earlier = None if request.origin.earlier is None else Run.open(request.origin.earlier)
    given = given_config(request) if earlier is None else _continued_config(request, earlier)
    what = request.source if request.source is not None else (given.source if given else None)
    if what is None:
        raise InputError("no source: name a folder of images, a .npy or .npz file, or: digits")
    asked = requested_settings(request, what, given)
    check_method(str(asked.get("method", "propos")))
    known = (given or Config()).with_settings(asked)
    if given is not None and earlier is None and given.source != known.source:
        # The pixel values of --config's own images say nothing about these.
        pixels = {key: value for key, value in asked.items() if key.startswith("pixels.")}
        known = known.with_settings({"pixels": PixelSettings().model_dump(), **pixels})
    black, white = known.pixels.black, known.pixels.white
    unopened = find_source(what, black, white, known.labels, known.data, reporter.show_task)
    return ResolvedRequest(request, chosen, what, earlier, given, asked, known, unopened)


def _continued_config(request: Request, earlier: Run) -> Config:
    """Return the settings with which a finished run is continued."""
    if request.recipe is not None or request.config is not None:
        other = "--recipe" if request.recipe is not None else "--config"
        raise InputError(f"--from and {other} both give complete settings: use one of them")
    config = continuation_config(earlier)
    array = isinstance(request.source, np.ndarray) or (
        isinstance(request.source, str | Path) and is_array(request.source)
    )
    return config.with_settings({"labels": None}) if array else config
