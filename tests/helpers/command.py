"""The `propos` command, in this process or in one of its own."""

import signal
import subprocess
import sys
from dataclasses import dataclass
from unittest import mock

import pytest

from helpers import forked
from helpers.hold import PATIENCE, SCRIPT
from propos.cli import main
from propos.cli.interrupts import SIGNALS


@dataclass
class Result:
    code: int
    out: str
    err: str
    processor_seconds: float = 0.0


def command(capsys, *arguments):
    """Run the command line here and return its exit code and what it printed."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    with mock.patch.object(sys, "argv", ["propos", *map(str, arguments)]), pytest.raises(SystemExit) as leaving:
        main()
    for number, handler in before.items():
        signal.signal(number, handler)
    captured = capsys.readouterr()
    return Result(leaving.value.code, captured.out, captured.err)


def start(*arguments, **keywords):
    """Start the command in a process of its own; `forked.Forked` says in which manners."""
    return forked.Forked(forked.command, *map(str, arguments), **keywords)


def run(*arguments, **keywords):
    """Run the command in a process of its own."""
    process = start(*arguments, **keywords)
    out, err = process.communicate()
    return Result(process.returncode, out, err, process.processor_seconds)


def start_anew(*arguments, hold=None, cwd=None, env=None):
    """Start the command as a shell would, with all that Python has to read first."""

    def prepare():
        # It hears Ctrl-C even where the tests themselves do not.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    propos = ["-m", "propos"] if hold is None else [SCRIPT, hold.as_text()]
    return subprocess.Popen(
        [sys.executable, *propos, *map(str, arguments)],
        cwd=cwd,
        env=env,
        preexec_fn=prepare,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_anew(*arguments, **keywords):
    """Run the command as a shell would."""
    process = start_anew(*arguments, **keywords)
    out, err = process.communicate(timeout=PATIENCE)
    return Result(process.returncode, out, err)
