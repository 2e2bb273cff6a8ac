"""The methods by name: each module of this package that defines one, and the entry points `propos.methods`."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeGuard

import torch
from pydantic import ValidationError

from propos.common.errors import InputError, shown
from propos.config import GROUP, REGISTERED, Config, method_modules, method_names
from propos.methods.base import Method, MethodSettings
from propos.methods.seeds import derive
from propos.methods.setup import Setup
from propos.methods.stage import Stage
from propos.networks import network_of


def check_method(name: str, option: str = "--method") -> None:
    """Refuse a method that does not exist; `option` is where it was named."""
    known = method_names()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f'did you mean "{near[0]}"?' if near else f"choose one of {', '.join(known)}"
        raise InputError(f'{option} {name}: unknown method "{name}": {hint}')


def register_method(name: str, kind: type[Method]) -> None:
    """Register a method under a name in this process; a package does so by an entry point `propos.methods`."""
    if name in method_names():
        raise InputError(f'method "{name}" already exists: choose another name')
    REGISTERED[name] = kind


def find_method(name: str, option: str = "--method") -> type[Method]:
    """Return the class of a method."""
    check_method(name, option)
    kind: type[Method] = REGISTERED[name] if name in REGISTERED else _loaded(name, option)
    return kind


@cache
def _loaded(name: str, option: str) -> type[Method]:
    modules = method_modules()
    if name in modules:
        module = importlib.import_module(modules[name])
        defined = (each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__)
        kinds = [each for each in defined if _is_method(each)]
        assert len(kinds) == 1, f"{module.__name__} defines {len(kinds)} methods, not one"
        return kinds[0]
    (point,) = entry_points(group=GROUP, name=name)
    loaded = point.load()
    if not _is_method(loaded):
        raise InputError(f"{option} {name}: {point.value} is not a subclass of propos.methods.Method")
    return loaded


def _is_method(value: Any) -> TypeGuard[type[Method]]:
    return inspect.isclass(value) and issubclass(value, Method) and not inspect.isabstract(value)


def parse_settings(
    kind: type[Method], sections: Mapping[str, Mapping[str, Any]] | None, name: str, where: str = "settings"
) -> Any:
    """Check a method's own settings and return them complete; an error names the key that is wrong."""
    given = (sections or {}).get(name, {})
    known = list(kind.Settings.model_fields)
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.4)
            hint = f"did you mean {name}.{near[0]}?" if near else f"{name} has {', '.join(known) or 'no settings'}"
            raise InputError(f"{where}: unknown key {shown(f'{name}.{key}', quoted=False)}: {hint}")
    try:
        return kind.Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in (name, *first["loc"]))
        problem = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{where}: {shown(key, quoted=False)} = {shown(first['input'])}: {problem}") from None


def settings_of(config: Config, where: str = "settings") -> MethodSettings:
    """Return the own settings of the method that a configuration names."""
    settings: MethodSettings = parse_settings(find_method(config.method), config.sections, config.method, where)
    return settings


def complete_sections(config: Config, where: str = "settings") -> Config:
    """Return a configuration with complete sections for its method and the one it builds on, and no others."""
    wanted = {name: settings.model_dump() for name, settings in _method_and_pretext(config, where)}
    for other, section in config.sections.items():
        if other not in wanted and section:
            key = f"{other}.{next(iter(section))}"
            raise InputError(f"{where}: {key}: the method is {config.method}, which does not read it; leave it out")
    return config.model_copy(update={"sections": wanted})


def describe_method(config: Config) -> str:
    """Return which method a configuration runs, on which network or method, and whether it trains anything.

    Examples: "k-means on EfficientNet-Lite0 features, nothing is trained", "ProPos + contrast", "SCAN on SimCLR".
    """
    names = [
        find_method(name).display_name(own) or name.upper() for name, own in _method_and_pretext(config, "settings")
    ]
    text = " on ".join(names if config.start.network is None else names[:1])  # else the network's features are named
    if config.start.network is not None:
        network, learns = network_of(config.start).title, config.start.learns
        trained = {"nothing": f" on {network} features", "last": f", training {network}'s last stage"}
        text += trained.get(learns, f", training {network}")
    return text if find_method(config.method).trains else f"{text}, nothing is trained"


def _method_and_pretext(config: Config, where: str) -> Iterator[tuple[str, MethodSettings]]:
    """Yield a configuration's method and the ones it builds on, with their settings."""
    name: str | None = config.method
    known: set[str] = set()
    while name is not None and name not in known:
        known.add(name)
        settings = parse_settings(find_method(name), config.sections, name, where)
        yield name, settings
        name = settings.model_dump().get("pretext")


def stages_of(config: Config) -> tuple[Stage, ...]:
    """Return the stages of a configuration's method; none where nothing is trained."""
    kind = find_method(config.method)
    return kind.stages(settings_of(config), Setup.of(config)) if kind.trains else ()


def build_method(config: Config, channels: int, images: int = 0, unlabelled: int = 0) -> Method:
    """Build the networks of a configuration's method; their initial weights depend on the seed alone."""
    kind = find_method(config.method)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(config.seed, "network"))
        method = kind(settings_of(config), Setup.of(config, channels, images, unlabelled))
    # Channels last is faster, on CPUs too (docs/speed.md); torch's types lack the keyword.
    return method.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def check_inputs(config: Config) -> None:
    """Refuse methods that learn from images where the inputs are features, and the other way round."""
    kind, start = find_method(config.method), config.start
    if start.network is not None and "features" not in kind.inputs:
        fitting = [name for name in method_names() if "features" in find_method(name).inputs]
        raise InputError(
            f"--method {config.method}: learns from images, not from a pretrained network's features: "
            f"use --start scratch, or one of {', '.join(fitting)}"
        )
    if start.network is not None and config.network.backbone != "whitened":
        raise InputError(
            f"network.backbone = {config.network.backbone}: the backbone is the pretrained {start.network}: "
            "use --start scratch to train another"
        )
    if start.learns != "nothing" and (start.network is None or not kind.tunes):
        raise InputError(
            f"start.learns = {start.learns}: only ProPos trains a pretrained network further: use --start pretrained "
            "and --method propos"
        )
    if start.network is None and "images" not in kind.inputs:
        raise InputError(f"--method {config.method}: needs a pretrained network: use --start pretrained")


def describe(name: str) -> str:
    """Return a method in one line."""
    return (find_method(name).__doc__ or "").strip().splitlines()[0]
