"""The check that options given with --resume agree with the run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from propos.common.errors import InputError, shown
from propos.config import Config, parse_clusters
from propos.networks import is_hub, names_network
from propos.runner.decision import ELSEWHERE
from propos.runner.request import Request, format_clusters, given_config, parse_duration
from propos.runs import Run


@dataclass(frozen=True)
class _Option:
    """An option of the command line, and how it differs from the run."""

    name: str
    value: str
    differs: str | None


def check_agreement(request: Request, run: Run) -> None:
    """Refuse options that differ from those a run started with.

    Options that the settings do not record, such as --time, are compared with the run's command.
    """
    differing = [
        option for option in _options(request, run) if option.differs is not None and not _began_with(run, option)
    ]
    if differing:
        names = ", ".join(dict.fromkeys(option.name for option in differing))
        why = " and ".join(str(option.differs) for option in differing)
        raise InputError(f"{run.path}: the run started with {why}: to resume it, leave out {names}")


def _options(request: Request, run: Run) -> Iterator[_Option]:
    """Compare each option of a request with a run."""
    labels = request.labels if isinstance(request.labels, str) else None
    simple = {
        "--method": ("method", request.method),
        "--recipe": ("recipe", request.recipe),
        "--seed": ("seed", request.seed),
        "--epochs": ("train.epochs", request.length.epochs),
        "--labels": ("labels", labels),
    }
    asked = [(option, str(value), {key: value}) for option, (key, value) in simple.items() if value is not None]
    asked += [("--set", f"{key}={value}", {key: value}) for key, value in request.settings.items()]
    if request.clusters is not None:
        text = format_clusters(request.clusters)
        asked.append(("-k", text, parse_clusters(text)))
    settings = {key: value for _, _, given in asked for key, value in given.items()}
    changed = run.config.with_settings(settings)
    for option, text, given in asked:
        yield _Option(option, text, _difference(run.config, changed, _keys(changed, given)))
    if (config := given_config(request)) is not None:
        config = config if request.length.epochs is None else config.with_epochs(request.length.epochs)
        config = config.with_settings(settings)
        yield _Option("--config", str(request.config), _difference(run.config, config, _complete_keys(config)))
    if request.length.time is not None:
        parse_duration(request.length.time)
        yield _Option(
            "--time", request.length.time, f"train.epochs = {run.config.train.epochs}, not --time {request.length.time}"
        )
    yield from _starts(request, run)


def _starts(request: Request, run: Run) -> Iterator[_Option]:
    """Compare the options that name a start with those of a run."""
    start, info = run.config.start, run.info
    if request.origin.earlier is not None:
        own = "no --from" if info.earlier is None else f"--from {info.earlier}"
        same = info.earlier == str(request.origin.earlier.resolve())
        yield _Option("--from", str(request.origin.earlier), None if same else f"{own}, not {request.origin.earlier}")
    if request.origin.start is not None:
        kind, _, name = request.origin.start.partition(":")
        own = "scratch" if start.network is None else start.network
        if start.network is not None and not is_hub(start.network):
            own = f"pretrained:{own}"
        same = own.startswith(kind) and name in ("", start.network)
        if is_hub(request.origin.start):
            same = names_network(request.origin.start, start)
        yield _Option("--start", request.origin.start, None if same else f"--start {own}, not {request.origin.start}")
    if request.origin.weights is not None:
        same = start.weights == str(request.origin.weights.resolve())
        yield _Option(
            "--weights",
            str(request.origin.weights),
            None if same else f"--weights {start.weights}, not {request.origin.weights}",
        )


def _difference(own: Config, asked: Config, keys: Iterable[str]) -> str | None:
    """Describe the first setting that differs from the run's."""
    its, theirs = own.flat(), asked.flat()
    for key in keys:
        if its[key] != theirs[key]:
            return f"{key} = {shown(its[key], quoted=False)}, not {shown(theirs[key], quoted=False)}"
    return None


def _keys(config: Config, given: Mapping[str, Any]) -> list[str]:
    """Return the keys that settings name; a name may be a section, and an open number of clusters is left out."""
    chosen = {"clusters"} if config.clusters is None else set()
    return [
        key for key in config.flat() if key not in chosen and any(f"{key}.".startswith(f"{name}.") for name in given)
    ]


def _complete_keys(config: Config) -> list[str]:
    """Return the keys of complete settings that do not depend on the images."""
    filled_in = ELSEWHERE | {"pixels"}
    return [key for key, value in config.flat().items() if value is not None and key.partition(".")[0] not in filled_in]


def _began_with(run: Run, option: _Option) -> bool:
    """Return whether the run's command has the same option."""
    try:
        words = shlex.split(run.info.command or "")
    except ValueError:
        return False
    pair = [option.name, option.value]
    return f"{option.name}={option.value}" in words or pair in [words[place : place + 2] for place in range(len(words))]
