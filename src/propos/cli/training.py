"""Starting, resuming and ending a run from the command line."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from propos.cli.display import Terminal, parse_duration
from propos.cli.following import announce, estimate, join_skipped
from propos.cli.stopping import stop_on_signals
from propos.config import Config, PixelSettings, from_yaml, parse_assignment, parse_clusters
from propos.data import (
    CachePolicy,
    Source,
    StreamedSource,
    UnopenedSource,
    cache_side,
    data_root,
    find_configured,
    find_source,
    is_array,
    is_benchmark,
    refusal,
    using,
)
from propos.distributed import UNNAMED_JOB, job, lost_another, restarts
from propos.durations import duration
from propos.errors import InputError, Interrupted, RunFailed, describe_os_error
from propos.methods import build_method, check_method
from propos.recipes import build_recipe, choose_recipe, for_method
from propos.report import write_report
from propos.runs import RunFolder, newest_folder, next_free_folder
from propos.training import (
    Fitted,
    WarmStart,
    choose_device,
    clusters_needed,
    continued,
    fitting_channels,
    prepare,
    provenance,
    start_from,
    train,
)

RUNS = Path("runs")
FLAGS = {"clusters": "-k", "settings": "--set", "earlier": "--from"}


@dataclass(frozen=True)
class Request:
    """What a person asked for."""

    source: str | None
    clusters: str | None  # a number, or a range to choose one from
    method: str | None
    recipe: str | None
    out: Path | None
    seed: int | None
    epochs: int | None
    settings: list[str]
    config: Path | None
    labels: str | None
    time: str | None
    earlier: Path | None
    data: Path | None


def start(request: Request, device_name: str, quiet: bool, report: bool = True) -> None:
    """Begin a new run."""
    device = choose_device(device_name)
    with Terminal(quiet) as terminal:
        earlier = None if request.earlier is None else RunFolder.open(request.earlier)
        given = _given_config(request) if earlier is None else _continued_config(request, earlier)
        name = request.source or (given.source if given else None)
        if name is None:
            raise InputError("say what to cluster: a folder of images, a .npy or .npz file, or: digits")
        out = request.out or next_free_folder(RUNS, _run_name(name))
        RunFolder.check_free(out)
        config, source = settle(request, given, name, device, terminal, earlier)
        seconds = None
        if request.time is not None:
            config, seconds = _timed(config, request.time, source, device)
            config = prepare(config, source)  # a short run may have no epoch left before it needs clusters
        run, begin = _create(out, config, source, device, earlier, terminal)
        terminal.note(f"{_aim(config)} in {len(source):,} images; results go to {out}")
        method = build_method(config)
        late = [
            term.name
            for stage, span in zip(method.stages, method.spans(config.train.epochs), strict=True)
            for term in stage.terms
            if term.starts >= len(span)
        ]
        if late:
            terminal.warn(
                f"{late[0]} would start after the last epoch: lower psl.start or train.warmup, or train longer"
            )
        with using(source):
            _train(run, config, source, device, terminal, begin, seconds)
            if report:
                _report(run, source, terminal)


def _create(
    out: Path, config: Config, source: Source, device: torch.device, earlier: RunFolder | None, terminal: Terminal
) -> tuple[RunFolder, WarmStart | None]:
    """Make the run folder, with what an earlier run gives it to begin with, and list what was left out."""
    begin = None if earlier is None else start_from(earlier, source, device)
    origin = {} if earlier is None else {"from": str(earlier.path.resolve())}
    run = RunFolder.create(out, provenance(_command(), config, source, device) | origin, config)
    if earlier is not None and begin is not None:
        begin.write(run)
        terminal.note(f"Going on from {earlier.path}, which knew {begin.shared:,} of the images.")
    if source.skipped:
        _list_skipped(run, source)
        terminal.note(f"The files that were skipped are listed in {run.path / 'skipped.csv'}.")
    return run, begin


def settle(
    request: Request,
    given: Config | None,
    name: str,
    device: torch.device,
    terminal: Terminal,
    earlier: RunFolder | None = None,
) -> tuple[Config, Source]:
    """Return the complete settings of what a person asked for, and the source opened."""
    settings = _requested(request, name) | {"data": _data(name, request, given)}
    check_method(str(settings.get("method", "propos")))
    # What says how to read the images is known before a recipe is: from --set, else from --config.
    early = (given or Config()).with_settings(settings)
    if given and earlier is None and given.source != early.source and "pixels.black" not in settings:
        early = early.with_settings({"pixels": PixelSettings().model_dump()})
    unopened = find_source(name, early.pixels.black, early.pixels.white, early.labels, early.data)
    base = given or _recipe(request, early.method, unopened, device, terminal)
    if given is not None and early.method != given.method:
        base = for_method(given, early.method, at_scale=False)
    if request.epochs is not None:
        base = base.with_epochs(request.epochs)
    config = base.with_settings({**settings, "pixels": early.pixels.model_dump()})
    channels = None if earlier is None else fitting_channels(earlier, config, unopened, name)
    source = _open(unopened, config, terminal, channels)
    return prepare(config, source), source


def resume(request: Request, device_name: str, quiet: bool, report: bool = True) -> None:
    """Go on with a run from its last checkpoint."""
    given = {f.name: getattr(request, f.name) for f in fields(request) if f.name not in ("source", "out", "data")}
    changed = [FLAGS.get(name, f"--{name}") for name, value in given.items() if value not in (None, [])]
    if changed:
        raise InputError(f"--resume goes on with the run's own settings: leave out {', '.join(changed)}")
    if request.out is None and request.source is None:
        raise InputError("--resume: name the run's folder, as in --out runs/digits-1")
    run = RunFolder.open(request.out or newest_folder(RUNS, _run_name(str(request.source))))
    info, config = run.info(), run.config()
    device = choose_device(info["device"] if device_name == "auto" else device_name)
    with Terminal(quiet) as terminal:
        if info["status"] == "finished":
            terminal.note(f"{run.path}: this run is finished; there is nothing to resume")
            return
        if request.source is not None and _resolved(request.source) != config.source:
            raise InputError(f"{run.path}: is a run of {config.source}, not of {request.source}; name its --out")
        if config.source is None:
            raise InputError(f"{run.path}: was trained on an array in memory and cannot be resumed from here")
        unopened = find_configured(config, request.data)
        begin = WarmStart.read(run)
        channels = None if begin is None else len(config.pixels.mean or ())
        keep: CachePolicy = "stream" if info["source"].get("streamed") else "build"
        source = _open(unopened, config, terminal, channels, keep)
        now = provenance(_command(), config, source, device)
        if now["source"]["fingerprint"] != info["source"]["fingerprint"]:
            raise InputError(f"{config.source}: its images are no longer those the run began with")
        _warn_of_changes(info, now, terminal)
        run.update_info(status="running")
        terminal.note(f"Going on with {run.path}. {_aim(config)} in {len(source):,} images.")
        with using(source):
            _train(run, config, source, device, terminal, begin)
            if report:
                _report(run, source, terminal)


def restarted(request: Request) -> Request | None:
    """Return what goes on with the run that this same command began before torchrun had to start it again."""
    if restarts() == 0:
        return None
    try:
        out = request.out or newest_folder(RUNS, _run_name(str(request.source)))
        info = RunFolder.open(out).info()
    except InputError:
        return None  # it did not come to that
    # Jobs without a name are all called the same: an earlier one's run may be it, unless that is finished.
    another = info.get("job") != job() or (job() == UNNAMED_JOB and info["status"] == "finished")
    if info["command"] != _command() or another:
        return None
    nothing: dict[str, Any] = {field.name: None for field in fields(request)}
    return Request(**{**nothing, "out": out, "settings": [], "data": request.data})


def _given_config(request: Request) -> Config | None:
    if request.config is None:
        return None
    if request.recipe is not None:
        raise InputError("--config and --recipe both give complete settings: use one of them")
    try:
        return from_yaml(request.config.read_text(), str(request.config))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--config {request.config}: cannot be read: {error}") from None


def _continued_config(request: Request, earlier: RunFolder) -> Config:
    if request.recipe is not None or request.config is not None:
        other = "--recipe" if request.recipe is not None else "--config"
        raise InputError(f"--from and {other} both give complete settings: use one of them")
    config = continued(earlier)
    of_array = request.source is not None and is_array(request.source)
    return config.with_settings({"labels": None}) if of_array else config


def _open(
    unopened: UnopenedSource,
    config: Config,
    terminal: Terminal,
    channels: int | None = None,
    keep: CachePolicy = "build",
) -> Source:
    """Read the images, showing how far it is, and say what had to be left out."""
    with terminal.working("Reading images") as progress:
        source = unopened.open(cache_side(config.views), channels, progress, keep)
    if isinstance(source, StreamedSource):
        why = refusal(source.entries, source.width, source.channels) or "as when the run began"
        terminal.note(f"Images are decoded anew whenever they are needed: {why}.")
    if source.skipped:
        first = source.skipped[0]
        terminal.warn(f"{len(source.skipped):,} files were skipped, the first {first.path} ({first.reason})")
    return source


def _list_skipped(run: RunFolder, source: Source) -> None:
    run.write_skipped([(skipped.path, skipped.reason) for skipped in source.skipped])


def _timed(config: Config, time: str, source: Source, device: torch.device) -> tuple[Config, float]:
    """Return the settings with the epochs fitted to the time a person gives, and the seconds they will take."""
    seconds = estimate(config, source, device)
    epochs = max(1, int(config.train.epochs * parse_duration(time) / seconds))
    return config.with_epochs(epochs), seconds * epochs / config.train.epochs


def _command() -> str:
    return shlex.join(["propos", *sys.argv[1:]])


def _recipe(
    request: Request, method: str, unopened: UnopenedSource, device: torch.device, terminal: Terminal
) -> Config:
    if request.recipe is not None:
        return build_recipe(request.recipe, method)
    name, why = choose_recipe(unopened, device.type)
    terminal.note(f"Recipe {name}, chosen for {why}.")
    return build_recipe(name, method)


def _requested(request: Request, source: str) -> dict[str, Any]:
    """Return the settings that were asked for, options over --set."""
    if request.time is not None:
        parse_duration(request.time)
        if request.epochs is not None:
            raise InputError("--time and --epochs both say how long to train: use one of them")
    direct = {"method": request.method, "seed": request.seed, "labels": request.labels}
    settings = dict(parse_assignment(assignment) for assignment in request.settings)
    if request.time is not None and "train.epochs" in settings:
        raise InputError("--time and --set train.epochs both say how long to train: use one of them")
    instead = {"source": "SOURCE", "data": "--data FOLDER", "recipe": "--recipe NAME"}
    for key in instead.keys() & settings.keys():
        raise InputError(f"--set {key}: give the {key} as {instead[key]} instead")
    settings |= {key: value for key, value in direct.items() if value is not None}
    if request.clusters is not None:
        settings |= parse_clusters(request.clusters)
    elif settings.get("clusters") is not None:
        settings.setdefault("suggest.range", None)  # that of --config does not hold for another number
    return {**settings, "source": _resolved(source)}


def _resolved(source: str) -> str:
    return str(Path(source).resolve()) if Path(source).exists() else source


def _run_name(source: str) -> str:
    return Path(source).resolve().stem.replace(":", "-")


def _aim(config: Config) -> str:
    """Say what a run looks for."""
    if config.clusters is not None or config.suggest.range is None:
        return f"Finding {config.clusters} clusters"
    when = f"at epoch {clusters_needed(config)}" if build_method(config).terms else "now"
    return f"Choosing {when} from {config.suggest.range[0]} to {config.suggest.range[1]} clusters"


def _data(source: str, request: Request, given: Config | None) -> str | None:
    """Return the data root to record: what names a published set alone does not say where it is."""
    if not is_benchmark(source):
        return None
    root = data_root(request.data or (given.data if given else None))
    return None if root is None else str(root)


def _warn_of_changes(before: dict[str, Any], now: dict[str, Any], terminal: Terminal) -> None:
    for key in ("machine", "threads", "processes", "device", "torch", "propos"):
        began = before.get(key, 1 if key == "processes" else None)
        if began != now[key]:
            terminal.warn(
                f"the run began with {key} {began} and goes on with {now[key]}: "
                "it will not be bit-identical to an uninterrupted one"
            )


def _train(
    run: RunFolder,
    config: Config,
    source: Source,
    device: torch.device,
    terminal: Terminal,
    start: WarmStart | None = None,
    seconds: float | None = None,
) -> None:
    """Train, write the results, and whatever happens leave a run folder that says so."""
    begin, before = time.monotonic(), run.info()["seconds"]

    def close(status: str) -> None:
        run.update_info(status=status, seconds=before + time.monotonic() - begin)

    how = f"go on with: propos run --resume --out {shlex.quote(str(run.path))}"
    try:
        with stop_on_signals(terminal) as stopped:
            if not terminal.quiet and run.info()["seconds"] == 0 and build_method(config).terms:
                seconds = seconds or estimate(config, source, device)
                terminal.note(f"Training for {config.train.epochs} epochs will take about {duration(seconds)}.")
            announce("train", config, source, device)
            fitted = train(config, source, device, terminal, run, lambda: bool(stopped), start)
            join_skipped(source)
        fitted.write(run)
        if source.skipped:
            _list_skipped(run, source)  # images that are streamed are found to be damaged only now
        close("finished")
    except Interrupted:
        close("interrupted")
        raise Interrupted(f"stopped; everything so far is saved; {how}") from None
    except RunFailed as error:
        close("failed")
        raise RunFailed(f"{error}; the last good checkpoint is in {run.path / 'checkpoint'}") from None
    except OSError as error:
        raise RunFailed(f"{describe_os_error(error)}; the last checkpoint is kept; {how}") from None
    except KeyboardInterrupt:
        raise Interrupted(f"stopped at once; the last checkpoint is kept; {how}") from None
    except (MemoryError, RuntimeError) as error:
        if lost_another(error):
            close("failed")
            raise RunFailed(f"another process has left; the last checkpoint is kept; {how}") from None
        # Torch has an exception of its own for a full GPU, and none but its text for a full memory.
        if not isinstance(error, MemoryError | torch.OutOfMemoryError) and "can't allocate memory" not in str(error):
            raise
        close("failed")
        raise RunFailed("out of memory: start a new run with a smaller batch (--set train.batch_size=…)") from None
    _say_results(run, fitted, terminal, time.monotonic() - begin)


def _report(run: RunFolder, source: Source, terminal: Terminal) -> None:
    """Write the run's page; whatever goes wrong with it, the run itself is finished and stays so."""
    again = f"propos report {shlex.quote(str(run.path))}"
    try:
        page = write_report(run, source, terminal.working)
    except KeyboardInterrupt:
        terminal.warn(f"the report was not written; the run is complete; write it with: {again}")
    except Exception as error:  # a page is worth less than a finished run
        terminal.warn(f"the report could not be written ({error}); the run is complete; try again with: {again}")
    else:
        terminal.note(f"See what was found: open {page.absolute()}")


def _say_results(run: RunFolder, fitted: Fitted, terminal: Terminal, seconds: float) -> None:
    last = fitted.history[-1]["measures"]
    terminal.bar.stop()
    terminal.note(
        f"\nDone in {duration(seconds)}: {last['n_clusters']} clusters of "
        f"{last['smallest_cluster']:,} to {last['largest_cluster']:,} images."
    )
    if "nmi" in last:
        terminal.note(
            f"Against the labels: accuracy {last['accuracy']:.3f}, NMI {last['nmi']:.3f}, "
            f"ARI {last['ari']:.3f}, AMI {last['ami']:.3f}."
        )
    if "head_nmi" in last:
        terminal.note(f"By the cluster head: accuracy {last['head_accuracy']:.3f}, NMI {last['head_nmi']:.3f}.")
    path = shlex.quote(str(run.path))
    terminal.note(f"Results: {run.path}/clusters.parquet has the cluster of each image.")
    terminal.note(f"New images: propos predict {path} NEW -o new.csv")
