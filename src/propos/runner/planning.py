"""From what a person asked for to complete settings and an opened source."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Shaped

from propos.augment import Kept, ask_what_is_kept
from propos.common.errors import InputError
from propos.common.words import counted
from propos.config import Config, PixelSettings
from propos.data import (
    Source,
    StreamedSource,
    UnopenedSource,
    What,
    find_source,
    fingerprint,
    is_array,
    refusal,
    without_colours,
)
from propos.data.arrays import check_labels
from propos.methods import check_method, complete_sections, find_method, stages_of
from propos.networks import read_pretrained
from propos.runner.progress import Reporter, SilentReporter
from propos.runner.provenance import provenance
from propos.runner.ranks import estimate
from propos.runner.recipes import TUNING, build_recipe, choose_recipe, fit_length, for_method, on_top
from propos.runner.request import (
    Request,
    check_start,
    given_config,
    requested_settings,
    run_name,
    seconds_in,
    wants_pretrained,
)
from propos.runner.sources import open_source_of, opened
from propos.runs import Run
from propos.training import (
    WarmStart,
    check_board,
    choose_device,
    continued,
    fitting_channels,
    prepare,
    start_from,
    usual_precision,
)

ELSEWHERE = {"source", "data", "log"}  # settings that say where images are and who watches, not what is learnt


@dataclass(frozen=True)
class Plan:
    """A run to be: complete settings and opened images, which are closed when the block of the plan ends."""

    config: Config
    source: Source
    device: torch.device
    command: str
    name: str  # of the source, for the run's folder
    unopened: UnopenedSource | None = None  # what the source looked like before it was opened
    earlier: Run | None = None
    start: WarmStart | None = None  # what the earlier run gives it to begin with
    seconds: float | None = None  # that it will take, where that was measured
    kept: Kept | None = None  # what changes leave its images, where the views were chosen by it
    known_as: str | None = None  # the hash under which a run in progress was planned
    closing: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.close()

    @cached_property
    def fingerprint(self) -> str:
        """What the images are known by."""
        return fingerprint(self.source)

    @cached_property
    def hash(self) -> str:
        """What the run is found again by: its settings, its images wherever they lie, and what it goes on from."""
        if self.known_as is not None:
            return self.known_as
        settings = {key: value for key, value in self.config.tree(mode="json").items() if key not in ELSEWHERE}
        labels = None if self.source.labels is None else [str(label) for label in self.source.labels]
        earlier: Any = None if self.earlier is None else self.earlier.info.plan
        if self.start is not None and self.start.corrections is not None:
            earlier = [earlier, self.start.corrections.hash]
        parts = [settings, self.fingerprint, labels, earlier]
        return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()

    def info(self) -> dict[str, Any]:
        """Return what run.json holds of a run that begins now."""
        origin = {} if self.earlier is None else {"from": str(self.earlier.path.resolve())}
        about = provenance(self.command, self.config, self.source, self.fingerprint, self.device)
        return about | {"plan": self.hash} | origin


def plan(
    request: Request, device: str = "auto", reporter: Reporter | None = None, assumed_clusters: int | None = None
) -> Plan:
    """Complete the settings of what a person asked for and open its source.

    Where neither the request nor labels say how many clusters, it is `assumed_clusters`, else training chooses.
    """
    reporter = reporter or SilentReporter()
    chosen = choose_device(device)
    check_start(request)
    earlier = None if request.earlier is None else Run.open(request.earlier)
    given = given_config(request) if earlier is None else _continued_config(request, earlier)
    what = request.source if request.source is not None else (given.source if given else None)
    if what is None:
        raise InputError("say what to cluster: a folder of images, a .npy or .npz file, or: digits")
    unopened, config = _settings(request, given, what, chosen, reporter, earlier is not None)
    check_board(config)
    channels = None if earlier is None else fitting_channels(earlier, config, unopened, str(what))
    with ExitStack() as stack:
        channels = channels or _colours(config, unopened) or unopened.channels
        source = stack.enter_context(opened(unopened, config, channels, working=reporter.working))
        _say_what_was_read(source, reporter)
        if config.labels == "folders":
            reporter.note(f"Labels: {unopened.folders}.")
        _label(source, request.given_labels())
        if config.clusters is None and source.labels is None and assumed_clusters is not None:
            config = config.with_settings({"clusters": min(assumed_clusters, len(source))})
        kept = None
        # A published set's own recipe has the paper's views.
        if given is None and request.recipe is None and config.recipe != unopened.published:
            config, kept = _fitting_views(config, source, request, reporter)
        config = prepare(config, source)
        seconds = None
        if request.time is not None:
            config, seconds = _timed(config, request.time, source, chosen)
        for note in () if earlier is None else earlier.notes_on_edits():
            reporter.warn(note)
        start = None if earlier is None else start_from(earlier, source, chosen, config)
        made = Plan(config, source, chosen, request.command, run_name(what), unopened, earlier, start, seconds, kept)
        return replace(made, closing=stack.pop_all())


def plan_resumed(
    run: Run,
    device: str = "auto",
    reporter: Reporter | None = None,
    data: str | Path | None = None,
    what: What | None = None,
    labels: Shaped[np.ndarray, " N"] | None = None,
) -> Plan:
    """Return what an unfinished run is to go on with, its images opened as `open_source_of` does.

    `what` and `labels` are what was only in memory, given once more.
    """
    reporter = reporter or SilentReporter()
    info, config = run.info, run.config
    check_board(config)
    chosen = choose_device(info.device if device == "auto" else device)
    with ExitStack() as stack:
        source = stack.enter_context(open_source_of(run, data, reporter.working, what))
        _label(source, labels)
        _say_what_was_read(source, reporter)
        made = Plan(config, source, chosen, info.command or "", run.path.name, known_as=info.plan or "")
        return replace(made, closing=stack.pop_all())


def _label(source: Source, labels: Shaped[np.ndarray, " N"] | None) -> None:
    """Give images the labels that were given beside them."""
    if labels is not None:
        source.labels = check_labels(labels, len(source), "y")


def _settings(
    request: Request, given: Config | None, what: What, device: torch.device, reporter: Reporter, goes_on: bool
) -> tuple[UnopenedSource, Config]:
    """Look at the source, and return the settings as far as they are known before it is opened."""
    settings = requested_settings(request, what, given)
    check_method(str(settings.get("method", "propos")))
    # What says how to read the images is known before a recipe is: from --set, else from --config.
    early = (given or Config()).with_settings(settings)
    if given and not goes_on and given.source != early.source:
        # What the settings' own images were like says nothing of these.
        asked = {key: value for key, value in settings.items() if key.startswith("pixels.")}
        early = early.with_settings({"pixels": PixelSettings().model_dump(), **asked})
    unopened = find_source(what, early.pixels.black, early.pixels.white, early.labels, early.data, reporter.working)
    unopened = _in_their_colours(unopened, early, reporter)
    base = given or _recipe(request, settings, unopened, device, reporter)
    if given is not None and early.method != given.method:
        below = settings.get(f"{early.method}.pretext")
        base = on_top(given, early.method) if goes_on else for_method(given, early.method, False, below)
    if early.start.learns != "nothing" and base.start.learns == "nothing":
        base = base.with_settings(TUNING)
    if request.epochs is not None:
        base = base.with_epochs(request.epochs)
    config = base.with_settings({**settings, "pixels": early.pixels.model_dump()})
    where = "--set" if request.settings else "settings"
    return unopened, _started(complete_sections(config, where), request, reporter)


def _in_their_colours(unopened: UnopenedSource, config: Config, reporter: Reporter) -> UnopenedSource:
    """Take files that are grey in all but name for grey ones, unless the settings are for images in colour."""
    if config.pixels.mean is not None and len(config.pixels.mean) != 1:
        return unopened
    seen = without_colours(unopened)
    if seen is not unopened:
        reporter.note("Images are stored in colour and hold none: they are taken for greyscale.")
    return seen


def _recipe(
    request: Request, settings: Mapping[str, Any], unopened: UnopenedSource, device: torch.device, reporter: Reporter
) -> Config:
    name, method = _named_recipe(request), settings.get("method")
    if name is None:
        by_images = request.start is None and (method is None or "images" not in find_method(method).inputs)
        name, why = choose_recipe(unopened, device.type, by_images)
        reporter.note(f"Recipe {name}, chosen for {why}.")
    precision = usual_precision(device)
    if precision != "float32" and "train.precision" not in request.settings:
        reporter.note(f"The backbone computes in {precision}; --set train.precision=float32 turns that off.")
    config = build_recipe(name, method, settings.get(f"{method}.pretext")).with_settings({"train.precision": precision})
    if _named_recipe(request) is not None or request.epochs is not None or "train.epochs" in request.settings:
        return config
    return _fitting_length(config, unopened.images, settings.get("clusters"), request.time is None, reporter)


def _fitting_length(config: Config, images: int, clusters: int | None, final: bool, reporter: Reporter) -> Config:
    """Return the settings with epochs for so many images, and say so where they are others than the recipe's."""
    fitted = fit_length(config, images, clusters)
    if final and fitted.train.epochs != config.train.epochs and find_method(fitted.method).trains:
        by_clusters = clusters and fitted != fit_length(config, images)
        why = "the numbers of images and clusters" if by_clusters else "the number of images"
        reporter.note(
            f"Length: {counted(fitted.train.epochs, 'epoch')}, by {why} (the recipe's own are "
            f"{config.train.epochs}); --epochs or --time says otherwise."
        )
    return fitted


def _named_recipe(request: Request) -> str | None:
    """Return the recipe that a person's options name, by itself or by the start."""
    return request.recipe or ("pretrained" if wants_pretrained(request) else None)


def _started(config: Config, request: Request, reporter: Reporter) -> Config:
    """Complete what the settings say of a pretrained network: which, and the hash of its weights."""
    wanted, of_features = wants_pretrained(request), config.network.backbone == "whitened"
    if wanted is not None and wanted != of_features:
        settings = "the settings" if config.recipe is None else f"recipe {config.recipe}"
        learn = "a pretrained network's features" if of_features else "images"
        raise InputError(
            f"--start {request.start or 'pretrained'}: {settings} learns from {learn}: leave out one of them"
        )
    if not of_features:
        return config
    named = (request.start or "").partition(":")[2] or None
    file = str(request.weights.resolve()) if request.weights is not None else config.start.weights
    name = named or (config.start.network if request.weights is None else None)
    weights = read_pretrained(name, file)
    found = weights.network
    if wanted:
        reporter.note(f"Seen by {found.name}, whose weights had seen: {found.seen}; licence: {found.licence}.")
    seen = {"views.size": found.side} if config.start.learns == "all" else {}
    start = {"start.network": found.name, "start.weights": file, "start.sha256": weights.sha256}
    return config.with_settings({**start, **seen})


def _colours(config: Config, unopened: UnopenedSource) -> int | None:
    """Read image files in colour where a pretrained network sees them."""
    return 3 if config.start.network is not None and unopened.headers is not None else None


def _continued_config(request: Request, earlier: Run) -> Config:
    if request.recipe is not None or request.config is not None:
        other = "--recipe" if request.recipe is not None else "--config"
        raise InputError(f"--from and {other} both give complete settings: use one of them")
    config = continued(earlier)
    of_array = isinstance(request.source, np.ndarray) or (
        isinstance(request.source, str | Path) and is_array(request.source)
    )
    return config.with_settings({"labels": None}) if of_array else config


def _timed(config: Config, time: str, source: Source, device: torch.device) -> tuple[Config, float]:
    """Return the settings with the epochs fitted to the time a person gives, and the seconds they will take."""
    seconds = estimate(config, source, device)
    stages = stages_of(config)
    if not stages:
        return config, seconds  # nothing is trained that could take longer
    epochs = max(len(stages), int(config.train.epochs * seconds_in(time) / seconds))
    timed = config.with_epochs(epochs)
    # A short run may have no epoch left before it needs clusters.
    return prepare(timed, source), seconds * epochs / config.train.epochs


def _fitting_views(config: Config, source: Source, request: Request, reporter: Reporter) -> tuple[Config, Kept | None]:
    """Return the settings with views that leave these images what they are; what a person set stays as it is."""
    unasked = "views.preset" in request.settings or config.start.network is not None  # there are no random views
    kept = None if unasked else ask_what_is_kept(source)
    if kept is None:
        return config, None
    suited = {key: value for key, value in kept.settings(source.channels).items() if key not in request.settings}
    if "views.flip" in suited:
        reporter.note(f"Views: {kept}.")
    return config.with_settings(suited), kept


def _say_what_was_read(source: Source, reporter: Reporter) -> None:
    """Say how images are read, and what had to be left out."""
    for note in source.notes:
        reporter.warn(note)
    if isinstance(source, StreamedSource):
        why = refusal(source.entries, source.side, source.channels, source.shaped) or "as when the run began"
        reporter.note(f"Images are decoded anew whenever they are needed: {why}.")
    if source.skipped:
        first = source.skipped[0]
        several = len(source.skipped) > 1
        said = f"{len(source.skipped):,} files were skipped, the first" if several else "1 file was skipped:"
        reporter.warn(f"{said} {first.path} ({first.reason})")
