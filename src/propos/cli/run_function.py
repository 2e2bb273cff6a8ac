"""`propos run` as a function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from propos.cli.run import run_on_terminal
from propos.config import Config
from propos.data import What
from propos.runner import Length, Origin, Output, Request
from propos.runs import Run


def run(
    source: What | None = None,
    k: int | str | tuple[int, int] | None = None,
    *,
    out: str | Path | None = None,
    method: str | None = None,
    recipe: str | None = None,
    seed: int | None = None,
    epochs: int | None = None,
    time: str | None = None,
    settings: Mapping[str, Any] | None = None,
    config: str | Path | Config | None = None,
    labels: str | ArrayLike | None = None,
    earlier: str | Path | None = None,
    data: str | Path | None = None,
    start: str | None = None,
    weights: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    quiet: bool = False,
    report: bool = True,
    **more_settings: Any,
) -> Run | None:
    """Learn clusters from images and write them to a run folder, as `propos run` does; return the opened run.

    `source` is anything that the command takes, or an array. `k` is a number, or a range: "5..40" or (5, 40).
    `earlier` is the command's --from. Settings are given by dotted key, or as keywords: train__lr=0.1 is train.lr, and
    cc_psl__psl_weight=0.2 is cc-psl.psl_weight.
    `labels` is "folders", or one label per image. Under torchrun all processes call this; the first returns the run.
    """
    by_key = {_dotted(key): value for key, value in more_settings.items()}
    request = Request(
        source=source,
        clusters=k,
        method=method,
        recipe=recipe,
        output=Output(out=_path(out)),
        seed=seed,
        length=Length(epochs=epochs, time=time),
        settings={**(settings or {}), **by_key},
        config=config if isinstance(config, Config) else _path(config),
        labels=labels if labels is None or isinstance(labels, str) else np.asarray(labels),
        origin=Origin(earlier=_path(earlier), start=start, weights=_path(weights)),
        data=_path(data),
    )
    return run_on_terminal(request, resume, device, quiet, report)


def _dotted(keyword: str) -> str:
    """Return the key of a setting; no section has an underscore in its name, but methods have hyphens."""
    section, dots, setting = keyword.partition("__")
    return f"{section.replace('_', '-')}.{setting}" if dots else keyword


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)
