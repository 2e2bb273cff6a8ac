"""The state of a comparison's folder: the request, the images, and the settings planned for each method."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from propos.common.errors import InputError
from propos.common.plain import parse_json, read_text
from propos.config import Config, parse
from propos.runner import Decision, Output, Reporter, Request, plan
from propos.runs import wait_for_lock, write_atomically
from propos.study.compare.request import Cell, CompareRequest, cells_of

FILE = "settings.json"
LOCK = ".writing"  # held by the process that writes


@dataclass(frozen=True)
class State:
    """A folder's comparison. Methods and seeds can be added; any other change needs another folder."""

    asked: dict[str, Any]
    name: str
    images: int
    labelled: bool
    seeds: int
    settings: dict[str, Any]  # of each method, complete but for the seed
    fingerprints: dict[str, str]  # of the images, at the size at which each method reads them
    refused: dict[str, str] = field(default_factory=dict)  # methods that cannot be planned here, and why

    @property
    def methods(self) -> list[str]:
        """The methods in the order of the request."""
        return list(self.settings)

    @property
    def cells(self) -> list[Cell]:
        """All its runs."""
        return cells_of(self.methods, self.seeds)

    def config(self, cell: Cell) -> Config:
        """Return the settings of a cell."""
        return parse(self.settings[cell.method], FILE).with_settings({"seed": cell.seed})

    def planned(self, cell: Cell, data: Path | None, device: str, reporter: Reporter) -> Decision:
        """Return the plan of a cell, its images opened."""
        config = self.config(cell)
        made = plan(
            Request(source=config.source, config=config, data=data, output=Output(command="propos compare")),
            device,
            reporter,
        )
        if made.fingerprint != self.fingerprints[cell.method]:
            made.closing.close()
            raise InputError(f"{config.source}: its images changed since the comparison began: choose another --out")
        return made

    def extended_with(self, more: State) -> State:
        """Return it with the additional methods and seeds of another one of the same images."""
        settings = self.settings | {name: more.settings[name] for name in more.methods if name not in self.settings}
        return replace(
            self,
            seeds=max(self.seeds, more.seeds),
            settings=settings,
            fingerprints=more.fingerprints | self.fingerprints,
            refused=_still(self.refused | more.refused, settings),
        )

    def refuse_other(self, request: CompareRequest, out: Path) -> None:
        """Refuse what would make another comparison."""
        asked = request.shared_options()
        for key in self.asked | asked:
            was, now = self.asked.get(key), asked.get(key)
            if was != now:
                raise InputError(f"{out}: contains a comparison with {key} = {was}, not {now}: choose another --out")

    def save(self, request: CompareRequest, out: Path) -> State:
        """Write it down, with what other processes planned for the same folder meanwhile, and return that."""
        out.mkdir(parents=True, exist_ok=True)
        with wait_for_lock(out / LOCK):
            there = read_state(out)
            if there is not None:
                there.refuse_other(request, out)
            state = self if there is None else there.extended_with(self)
            write_atomically(out / FILE, f"{json.dumps(asdict(state), indent=1)}\n".encode())
        return state


def read_state(out: Path) -> State | None:
    """Read what a folder is of, if it is of anything."""
    path = out / FILE
    if not path.is_file():
        if out.exists() and (not out.is_dir() or any(each for each in out.iterdir() if each.name != LOCK)):
            raise InputError(f"{out}: already exists and contains no comparison: choose another --out")
        return None
    found = parse_json(read_text(path), str(path))
    try:
        state = State(**found)
        kinds = (
            (state.asked, dict),
            (state.settings, dict),
            (state.fingerprints, dict),
            (state.refused, dict),
            (state.seeds, int),
            (state.images, int),
            (state.name, str),
            (state.labelled, bool),
        )
        if not all(isinstance(value, kind) for value, kind in kinds):
            raise TypeError
        for method in state.methods:
            state.config(Cell(method, 0))
            state.fingerprints[method]
    except (TypeError, KeyError):
        raise InputError(f"{path}: not written by this version of propos compare: choose another --out") from None
    return state


def planned_state(request: CompareRequest, out: Path, device: str, reporter: Reporter) -> State:
    """Return what the folder is to be of now: what it was, with the methods and seeds that come to it.

    A method that cannot be planned for these images is kept with the reason; where none can be, that is refused.
    """
    state = read_state(out)
    if state is not None:
        state.refuse_other(request, out)
    refused: dict[str, str] = {}
    for method in request.methods:
        if state is None or method not in state.settings:
            try:
                state = _with_method(state, request, method, device, reporter)
            except InputError as error:
                refused[method] = str(error)
    if state is None or len(refused) == len(request.methods):
        raise InputError(_why_none(refused))
    for method, why in refused.items():
        reporter.warn(f"{method} is not compared: {why}")
    return replace(
        state, seeds=max(state.seeds, request.seeds), refused=_still(state.refused | refused, state.settings)
    )


def _still(refused: dict[str, str], settings: dict[str, Any]) -> dict[str, str]:
    """Leave out what has been planned since."""
    return {name: why for name, why in refused.items() if name not in settings}


def _why_none(refused: dict[str, str]) -> str:
    """Return why no method can be planned: usually the same reason for all."""
    reasons = set(refused.values())
    return reasons.pop() if len(reasons) == 1 else "; ".join(f"{name}: {why}" for name, why in refused.items())


def _with_method(state: State | None, request: CompareRequest, method: str, device: str, reporter: Reporter) -> State:
    """Plan a method: its settings for these images and this length."""
    with plan(request.method_request(method), device, reporter) as made:
        config, labelled = made.config, made.source.labels is not None
        if config.clusters is None:
            raise InputError(f"{request.source}: no labels to count classes: give the number of clusters, as in -k 10")
        if state is None:
            state = State(request.shared_options(), made.source.name, len(made.source), labelled, request.seeds, {}, {})
        if len(made.source) != state.images:
            raise InputError(f"{request.source}: its images changed since the comparison began: choose another --out")
        known_by = made.fingerprint
    return replace(
        state,
        settings=state.settings | {method: config.tree(mode="json")},
        fingerprints=state.fingerprints | {method: known_by},
    )
