"""The settings tree: unknown keys and wrong types are errors that name the key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError

from propos.common.errors import InputError, shown
from propos.common.plain import parse_yaml
from propos.config.methods import method_names
from propos.config.sections import (
    VIEW_PRESETS,
    EstepSettings,
    LogSettings,
    NetworkSettings,
    PixelSettings,
    Section,
    StartSettings,
    StrongSettings,
    SuggestSettings,
    TrainSettings,
    ViewSettings,
)


class Config(Section):
    """The complete settings of a run; the defaults are the paper's."""

    source: str | None = None
    data: str | None = None
    labels: Literal["folders"] | None = None
    recipe: str | None = None
    method: str = "propos"
    clusters: int | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    views: ViewSettings = ViewSettings()
    strong: StrongSettings = StrongSettings()
    start: StartSettings = StartSettings()
    network: NetworkSettings = NetworkSettings()
    suggest: SuggestSettings = SuggestSettings()
    estep: EstepSettings = EstepSettings()
    train: TrainSettings = TrainSettings()
    pixels: PixelSettings = PixelSettings()
    log: LogSettings = LogSettings()
    keep_epochs: tuple[Annotated[int, Field(ge=0)], ...] = ()
    # Settings of methods, by method: plain values, which `propos.methods` checks and completes.
    sections: dict[str, dict[str, Any]] = Field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.to_yaml())

    @property
    def pretext(self) -> str | None:
        """The method that this one builds on, if its settings name one."""
        name: str | None = self.sections.get(self.method, {}).get("pretext")
        return name

    def with_epochs(self, epochs: int) -> Config:
        """Return these settings for another length; the warm-up and settings named `*_start` scale with it."""
        longer = self.with_settings({"train.epochs": epochs})
        scale = longer.train.epochs / self.train.epochs
        starts = {
            f"{section}.{key}": round(value * scale)
            for section, settings in self.sections.items()
            for key, value in settings.items()
            if key.endswith("_start") and value is not None
        }
        return longer.with_settings({"train.warmup": round(self.train.warmup * scale), **starts})

    def with_settings(self, settings: Mapping[str, Any]) -> Config:
        """Return these settings with some dotted keys changed; a new preset brings its own views."""
        tree = self.tree()
        preset = settings.get("views.preset")
        if isinstance(preset, str):
            tree["views"].update(VIEW_PRESETS.get(preset, {}))
        for key, value in settings.items():
            if key == "sections":
                tree = {name: section for name, section in tree.items() if name not in self.sections} | dict(value)
            else:
                _plant(tree, key, value)  # a key may also name a whole section
        return parse(tree)

    def tree(self, mode: Literal["python", "json"] = "python") -> dict[str, Any]:
        """Return all values as nested dictionaries; a method's section stands under its name."""
        tree = self.model_dump(mode=mode)
        sections: dict[str, Any] = tree.pop("sections")
        return {**tree, **sections}

    def flat(self) -> dict[str, Any]:
        """Return every value by its dotted key."""
        return dict(_items(self.tree()))

    def to_yaml(self) -> str:
        """Write the complete settings; reading them back gives the same."""
        return yaml.safe_dump(self.tree(mode="json"), sort_keys=False)


def parse(tree: Any, where: str = "settings") -> Config:
    """Check a tree of plain values and return the settings; an error names the wrong key."""
    if not isinstance(tree, Mapping):
        raise InputError(f"{where}: expected keys and values, found {type(tree).__name__}")
    for key in _leaves(tree):
        _refuse_unknown(key, where)
    plain = _tuples(tree)
    sections = {name: plain.pop(name) for name in list(plain) if name not in Config.model_fields}
    try:
        return Config.model_validate({**plain, "sections": sections})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        problem = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{where}: {shown(key, quoted=False)} = {shown(first['input'])}: {problem}") from None


def from_yaml(text: str, where: str) -> Config:
    """Read settings from YAML text."""
    return parse(parse_yaml(text, where), where)


def parse_assignment(assignment: str) -> tuple[str, Any]:
    """Split `key=value` from the command line; the value is read as YAML."""
    key, equals, text = assignment.partition("=")
    if not equals:
        raise InputError(f"--set {assignment}: write key=value, as in --set train.epochs=50")
    _refuse_unknown(key.strip(), "--set")
    value = parse_yaml(text, f"--set {shown(assignment, quoted=False)}")
    if isinstance(value, str):
        value = _number(value)
    return key.strip(), value


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Read the values of --set; the last value of a key counts."""
    return dict(parse_assignment(assignment) for assignment in assignments)


def parse_clusters(text: str) -> dict[str, Any]:
    """Read a number of clusters (10), or a range to choose one from (5..40), as settings."""
    match = re.fullmatch(r"(-?\d{1,18})(?:\.\.(-?\d{1,18}))?", text.strip(), flags=re.ASCII)
    if match is None:
        text = text if len(text) <= 40 else f"{text[:40]}…"
        raise InputError(f"-k {text}: write a number, as in -k 10, or a range to choose from, as in -k 5..40")
    lowest, highest = int(match[1]), int(match[2] or match[1])
    if lowest > highest:
        raise InputError(f"-k {text}: write the smaller number first, as in -k {highest}..{lowest}")
    if lowest < 2:
        raise InputError(f"-k {text}: at least 2 clusters are needed to tell images apart")
    if match[2] is None:
        return {"clusters": lowest, "suggest.range": None}
    return {"clusters": None, "suggest.range": (lowest, highest)}


@cache
def keys() -> tuple[str, ...]:
    """List every dotted key that all methods share."""
    return tuple(_leaves(Config().tree()))


def _number(text: str) -> Any:
    """Read 1e-3 as a number: YAML 1.1 takes it for text and wants 1.0e-3."""
    try:
        return float(text)
    except ValueError:
        return text


def _leaves(tree: Mapping[str, Any]) -> Iterator[str]:
    return (key for key, _ in _items(tree))


def _items(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _items(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _refuse_unknown(key: str, where: str) -> None:
    known = keys()
    section, _, rest = key.partition(".")
    if key in known or (section in method_names() and rest):
        return  # a method checks its own section when it is read
    # A section set to a plain value (train=3) is a wrong value, not an unknown key.
    inside = [k for k in known if k.startswith(f"{key}.")]
    if inside:
        raise InputError(f"{where}: {key} is a section: set one of {', '.join(inside)}")
    if section in method_names():
        raise InputError(f"{where}: {key} is the section of a method: set one of its settings, as in {key}.KEY=VALUE")
    by_last_part = [k for k in known if k.rsplit(".", 1)[-1] == key.rsplit(".", 1)[-1]]
    near = by_last_part or difflib.get_close_matches(key, known, n=1, cutoff=0.7)
    hint = f"did you mean {near[0]}?" if near else "`propos recipes show digits` lists the keys"
    raise InputError(f"{where}: unknown key {shown(key, quoted=False)}: {hint}")


def _plant(tree: dict[str, Any], key: str, value: Any) -> None:
    *path, leaf = key.split(".")
    for part in path:
        tree = tree.setdefault(part, {})
    tree[leaf] = value


def _tuples(value: Any) -> Any:
    """Convert lists to tuples and integers to floats: YAML and JSON do not distinguish them."""
    if isinstance(value, Mapping):
        return {str(key): _tuples(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_tuples(item) for item in value)
    return value
