"""Processes of their own, forked from one that has read torch: reading it takes longer than most runs of the tests."""

import contextlib
import multiprocessing
import os
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from helpers.hold import PATIENCE

FORKS = multiprocessing.get_context("forkserver")
# What training reads anyway. torch._dynamo comes with the first optimiser, scikit-learn with the first score, openTSNE
# with the first page; pytest is what starts the forks.
FORKS.set_forkserver_preload(
    [
        "pytest",
        "torch._dynamo",
        "sklearn.datasets",
        "sklearn.metrics",
        "openTSNE",
        "propos.cli.app",
        "propos.cli.display",
        "propos.runner.inspect",
        "propos.runner.recipes",
        "propos.runner.run",
        "propos.runner.execute",
        "propos.runner.planner",
        "propos.training",
        "propos.review.report",
        "propos.review.server",
        "torch.distributed.run",
    ]
)


class Forked:
    """A process that runs a function, with as much of subprocess.Popen as the tests use."""

    def __init__(self, function, *arguments, cwd=None, env=None, largest_file=None, ignored=(), hold=None):
        """Start it; `largest_file` is what a full disk lets it write, `ignored` are signals, `hold` where it stops."""
        self._said = tempfile.TemporaryDirectory(prefix="propos-test-", ignore_cleanup_errors=True)
        self._out, self._err, self._cost = (Path(self._said.name) / name for name in ("out", "err", "cost"))
        said = str(self._out), str(self._err), str(self._cost)
        settings = (cwd, dict(env or os.environ), largest_file, ignored, hold, *said)
        # A daemon is ended with the tests, should one leave it behind.
        self._process = FORKS.Process(target=_become, args=(settings, function, arguments), daemon=True)
        self._process.start()
        self.pid = self._process.pid
        self.processor_seconds = 0.0  # known after its end, unless a signal ended it

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def said(self):
        """Return what it has printed so far."""
        return self._out.read_text() if self._out.exists() else ""

    def complaints(self):
        """Return what it has written to its error output so far."""
        return self._err.read_text()

    def communicate(self):
        """Wait for its end and return what it said."""
        self._process.join(PATIENCE)
        if self.returncode is None:
            self._process.kill()
            raise subprocess.TimeoutExpired(str(self.pid), PATIENCE)
        said = self._out.read_text(), self._err.read_text()
        if self._cost.exists():
            self.processor_seconds = float(self._cost.read_text())
        self._said.cleanup()
        return said


def _become(settings, function, arguments):
    cwd, env, largest_file, ignored, hold, *said, cost = settings
    for descriptor, path in enumerate(said, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
    os.chdir(cwd or Path.cwd())
    os.environ.clear()
    os.environ.update(env)
    # It hears requests to end even where the tests themselves do not, as under nohup.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    if hold is not None:
        hold.install()
    try:
        function(*arguments)
    finally:
        with contextlib.suppress(OSError):
            Path(cost).write_text(str(sum(os.times()[:4])))  # with what it started and waited for


def command(*arguments):
    """Be the `propos` command."""
    from propos.cli import main

    sys.argv = ["propos", *arguments]
    main()


def script(path):
    """Be a program of one file."""
    sys.argv = [path]
    runpy.run_path(path, run_name="__main__")
