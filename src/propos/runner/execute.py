"""Execution of a plan. Only this module writes a run's results, status and list of skipped files."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from propos.common.errors import InputError, Interrupted, RunFailed, describe_os_error, is_out_of_memory
from propos.config import Config
from propos.data import Selection, Source, StreamedSource, readable
from propos.distributed import is_lost_process
from propos.methods import find_method
from propos.runner.decision import ELSEWHERE, Decision
from propos.runner.progress import Reporter, SilentReporter, Stopping, describe_skipped, never_stop
from propos.runner.provenance import provenance
from propos.runner.ranks import announce, estimate, join_skipped
from propos.runner.resource_usage import ResourceUsage
from propos.runs import Run, RunFolder, lock_folder
from propos.training import Fitted, WarmStart, clusters_needed, late_losses, train
from propos.training.corrections import renumbered

if TYPE_CHECKING:
    from propos.common.errors import Failure

MUST_AGREE = ("machine", "threads", "processes", "device", "torch", "propos")


def execute_plan(
    plan: Decision, folder: Path | None = None, reporter: Reporter | None = None, stopping: Stopping = never_stop
) -> Fitted:
    """Train as planned, in a run folder if one is given: a new one, or one of the same plan, which is resumed.

    `stopping` yields a function that tells whether to stop. Without a folder nothing is written.
    """
    reporter = reporter or SilentReporter()
    if folder is None:
        with stopping() as stop:
            announce("train", plan.config, plan.source, plan.device)
            return train(plan.config, plan.source, plan.device, reporter, None, stop, plan.start)
    if not (folder / "run.json").is_file():
        RunFolder.check_free(folder)
    with lock_folder(folder):
        return _in_folder(plan, folder, reporter, stopping)


def _in_folder(plan: Decision, folder: Path, reporter: Reporter, stopping: Stopping) -> Fitted:
    """Train in a folder that this process has locked."""
    if not (folder / "run.json").is_file():
        return _train(_begin(plan, folder, reporter), plan, plan.config, plan.start, reporter, stopping)
    run = Run.open(folder)
    if (run.info.plan or "") != plan.hash:
        raise InputError(f"{folder}: contains a run {_difference(run, plan)}; choose another folder")
    if run.finished:
        return Fitted.from_run(run, plan.device)
    _mark_resumed(run, plan, reporter)
    # A number of clusters may have been chosen since it was planned.
    return _train(RunFolder(folder), plan, run.config, WarmStart.read(run), reporter, stopping)


def save(fitted: Fitted, info: Mapping[str, Any], folder: Path) -> None:
    """Write the results of training without a folder as a run folder."""
    fitted.write(RunFolder.create(folder, info, fitted.model.config))


def _begin(plan: Decision, folder: Path, reporter: Reporter) -> RunFolder:
    """Create the run folder, with the state of an earlier run and the list of skipped files."""
    config = plan.config
    run = RunFolder.create(folder, plan.info(), config)
    if plan.earlier is not None and plan.start is not None:
        plan.start.write(run)
        reporter.note(f"Continuing from {plan.earlier.path}: {plan.start.shared:,} images already known.")
        corrections = plan.start.corrections
        if corrections is not None:
            reporter.note(
                f"Applying its corrections: {corrections.fixed_count:,} images keep their corrected cluster; "
                f"{corrections.left_out:,} are left out."
            )
            for was, now in renumbered(plan.earlier.corrected).items():
                reporter.note(f"Its cluster {was} is cluster {now} here.")
    if plan.source.skipped:
        _list_skipped(run, plan.source)
        reporter.note(f"Skipped files are listed in {run.path / 'skipped.csv'}.")
    reporter.note(f"{_clusters_in_words(config)} in {_images_in_words(plan.source)}; results: {folder}")
    for text in late_losses(config):
        reporter.warn(text)
    return run


def _mark_resumed(run: Run, plan: Decision, reporter: Reporter) -> None:
    """Mark a run as running again, and warn about whatever keeps the result from being bit-identical."""
    now = provenance(plan.command, plan.config, plan.source, run.info.source.fingerprint or "", plan.device)
    for key in MUST_AGREE:
        began = getattr(run.info, key)
        if began != now[key]:
            reporter.warn(
                f"the run started with {key} {began} and is resumed with {now[key]}: "
                "it will not be bit-identical to an uninterrupted one"
            )
    if plan.device.type == "cuda" and not run.config.train.deterministic:
        reporter.note(
            "On a GPU a resumed run is bit-identical to an uninterrupted one only with train.deterministic=true."
        )
    RunFolder(run.path).update_info(status="running", **({} if run.info.failure is None else {"failure": None}))
    reporter.note(f"Resuming {run.path}. {_clusters_in_words(run.config)} in {_images_in_words(plan.source)}.")


def _difference(run: Run, plan: Decision) -> str:
    """Describe how a run differs from a plan."""
    if run.info.source.fingerprint != plan.fingerprint:
        return "of other images"
    its, ours = run.config.flat(), plan.config.flat()
    chosen = {"clusters"} if plan.config.clusters is None else set()
    other = [key for key in ours if its.get(key) != ours[key] and key.partition(".")[0] not in ELSEWHERE | chosen]
    return f"with {other[0]} = {its[other[0]]}, not {ours[other[0]]}" if other else "started in another way"


def _train(
    run: RunFolder, plan: Decision, config: Config, start: WarmStart | None, reporter: Reporter, stopping: Stopping
) -> Fitted:
    """Train and write the results."""
    begin, known = time.monotonic(), len(plan.source.skipped)
    with _status(run, config) as close:
        with stopping() as stop:
            if not reporter.quiet and run.info().seconds == 0 and find_method(config.method).trains:
                seconds = plan.seconds or estimate(config, plan.source, plan.device)
                reporter.expect(config.train.epochs, seconds)
            announce("train", config, plan.source, plan.device)
            fitted = train(config, plan.source, plan.device, reporter, run, stop, start)
            join_skipped(plan.source)
        fitted.write(run)
        if len(plan.source.skipped) > known:  # damaged images of a stream are found only when they are decoded
            _list_skipped(run, plan.source)
            reporter.warn(describe_skipped(plan.source.skipped[known:]))
        close("finished")
    reporter.done(run.path, fitted, time.monotonic() - begin)
    return fitted


@contextmanager
def _status(run: RunFolder, config: Config) -> Iterator[Callable[[str], None]]:
    """Record the run's status however it ends, and say how to resume it; yields the function that sets the status."""
    spending = ResourceUsage(run.info())

    def close(status: str, **more: str | None) -> None:
        run.update_info(status=status, **spending.info(), **more)

    def leave(status: str, **more: str | None) -> None:
        with suppress(OSError):  # a full disk has no room for the status either
            close(status, **more)

    def failed(sentence: str, code: Failure | None) -> RunFailed:
        leave("failed", failure=code)
        return RunFailed(sentence, code)

    again = f"with: propos run --resume --out {shlex.quote(str(run.path))}"
    if config.source is None:
        again = "by fitting the same images again"

    def kept() -> str:
        if _has_checkpoint(run):
            return f"the last checkpoint is kept; resume {again}"
        return f"there is no checkpoint yet; start again {again}"

    try:
        yield close
    except Interrupted:
        close("interrupted")
        raise Interrupted(f"stopped; everything so far is saved; resume {again}") from None
    except RunFailed as error:
        good = error.code != "checkpoint" and _has_checkpoint(run)
        where = f"; the last good checkpoint is in {run.path / 'checkpoint'}" if good else ""
        raise failed(f"{error}{where}", error.code) from None
    except OSError as error:
        raise failed(f"{describe_os_error(error)}; {kept()}", "system") from None
    except KeyboardInterrupt:
        leave("interrupted")
        raise Interrupted(f"stopped at once; {kept()}") from None
    except (MemoryError, RuntimeError) as error:
        if is_lost_process(error):
            raise failed(f"another process ended; {kept()}", "process") from None
        if not is_out_of_memory(error):
            leave("failed")
            raise
        raise failed(f"out of memory: {_needing_less(config)}", "memory") from None
    except Exception:  # a checkpoint that does not fit, or a bug
        leave("failed")
        raise


def _needing_less(config: Config) -> str:
    """Return what to do where memory ran out: nothing that can be set makes a run that trains nothing smaller."""
    if find_method(config.method).trains:
        return "start a new run with a smaller batch (--set train.batch_size=…)"
    return "close other programs, or use a machine with more"


def _has_checkpoint(run: RunFolder) -> bool:
    """Return whether there is a checkpoint to resume from."""
    return any((run.path / "checkpoint").glob("[0-9]*.safetensors"))


def _list_skipped(run: RunFolder, source: Source) -> None:
    run.write_skipped([(skipped.path, skipped.reason) for skipped in source.skipped])


def _clusters_in_words(config: Config) -> str:
    """Describe the number of clusters that a run finds."""
    if config.clusters is not None or config.suggest.range is None:
        return f"Finding {config.clusters} clusters"
    when = f"at epoch {clusters_needed(config)} " if find_method(config.method).trains else ""
    return f"Choosing {when}from {config.suggest.range[0]} to {config.suggest.range[1]} clusters"


def _images_in_words(source: Source) -> str:
    """Describe the images of a run: files, where it is not known yet whether all of the others can be decoded."""
    whole = source.source if isinstance(source, Selection) else source
    count = int(readable(source, np.arange(len(source))).sum())
    return f"{count:,} image files" if isinstance(whole, StreamedSource) else f"{count:,} images"
