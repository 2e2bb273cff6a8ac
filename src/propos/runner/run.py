"""Runs for the command line and for Python: started, resumed, or continued after a restart by torchrun."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from propos.common.errors import InputError
from propos.data import Source
from propos.distributed import UNNAMED_JOB, job_id, rank, restart_count
from propos.runner.decision import Decision
from propos.runner.execute import execute_plan
from propos.runner.planner import plan, plan_resumed
from propos.runner.progress import Reporter, SilentReporter, Stopping, never_stop
from propos.runner.ranks import follow_first_process
from propos.runner.recording_reporter import RecordingReporter
from propos.runner.request import Request, absolute_source, run_name
from propos.runner.resume_check import check_agreement
from propos.runs import Run, RunFolder, newest_folder, next_free_folder, refuse_if_locked

RUNS = Path("runs")

Page = Callable[[Run, Source], object]


def run_request(
    request: Request,
    resume: bool = False,
    device: str = "auto",
    reporter: Reporter | None = None,
    stopping: Stopping = never_stop,
    page: Page | None = None,
) -> Run | None:
    """Run a request and return the finished run; `page` is called with it while its images are open.

    Under torchrun, rank 0 returns the run; the other ranks follow it and return None.
    """
    if rank() > 0:
        follow_first_process(request.data, stopping)
        return None
    reporter = reporter or SilentReporter()
    run = find_run_to_resume(request) if resume else find_restarted_run(request)
    if run is not None and run.finished:
        reporter.note(f"{run.path}: the run is finished: nothing to resume")
        return run
    known = run.path if run is not None else request.output.out
    if known is not None:
        refuse_if_locked(known)  # before any image is read
    if run is None and request.output.out is not None:
        RunFolder.check_free(request.output.out)
    with (
        _recorded(reporter, known) as planning,
        _planned(request, run, device, planning) as planned,
        next_free_folder(RUNS, planned.name) if known is None else nullcontext(known) as out,
        _recorded(reporter, out) as recording,
    ):
        execute_plan(planned, out, recording, stopping)
        finished = Run.open(out)
        if page is not None:
            with recording.lines.task("Writing the page"):
                page(finished, planned.source)
    return finished


@contextmanager
def _recorded(reporter: Reporter, folder: Path | None) -> Iterator[RecordingReporter]:
    """Record progress in a folder as long as the command runs; without a folder nothing is written."""
    recording = RecordingReporter(reporter, folder or Path(os.devnull))
    try:
        yield recording
    finally:
        recording.lines.remove()


def _planned(request: Request, run: Run | None, device: str, reporter: Reporter) -> Decision:
    if run is None:
        return plan(request, device, reporter)
    in_memory = None if isinstance(request.source, str | Path) else request.source
    return plan_resumed(run, device, reporter, request.data, in_memory, request.given_labels())


def find_run_to_resume(request: Request) -> Run:
    """Return the run to resume; options may be repeated if they agree with it."""
    if request.output.out is None and request.source is None:
        raise InputError("--resume: name the run's folder, as in --out runs/digits-1")
    run = _run_of(request)
    own = run.config.source
    if not run.finished and request.source is not None and absolute_source(request.source) != own:
        raise InputError(f"{run.path}: is a run of {own}, not of {request.source}; name its --out")
    check_agreement(request, run)
    return run


def find_restarted_run(request: Request) -> Run | None:
    """Return the run that this command started before torchrun restarted it."""
    if restart_count() == 0 or (request.output.out is None and request.source is None):
        return None
    try:
        run = _run_of(request)
    except InputError:
        return None  # it had not been created yet
    info = run.info
    # Unnamed jobs share one name: an unfinished run may be this job's, a finished one is not.
    another = info.job != job_id() or (job_id() == UNNAMED_JOB and run.finished)
    return None if another or info.command != request.output.command else run


def _run_of(request: Request) -> Run:
    """Open the run in the request's folder, else the newest run of its source."""
    if request.output.out is not None:
        return Run.open(request.output.out)
    assert request.source is not None
    return Run.open(newest_folder(RUNS, run_name(request.source)))
