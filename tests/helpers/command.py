"""The `propos` command, in this process or in one of its own."""

import signal
import subprocess
import sys
from dataclasses import dataclass
from unittest import mock

import pytest

from propos.cli import main
from propos.cli.interrupts import SIGNALS


@dataclass
class Result:
    code: int
    out: str
    err: str


def command(capsys, *arguments):
    """Run the command line here and return its exit code and what it printed."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    with mock.patch.object(sys, "argv", ["propos", *map(str, arguments)]), pytest.raises(SystemExit) as leaving:
        main()
    for number, handler in before.items():
        signal.signal(number, handler)
    captured = capsys.readouterr()
    return Result(leaving.value.code, captured.out, captured.err)


def start(*arguments, cwd=None, preexec_fn=lambda: None, **options):
    """Start the command in a process of its own, which hears Ctrl-C even where the tests themselves do not."""

    def prepare():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        preexec_fn()

    return subprocess.Popen(
        [sys.executable, "-m", "propos", *map(str, arguments)],
        cwd=cwd,
        preexec_fn=prepare,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def run(*arguments, cwd=None, **options):
    """Run the command in a process of its own."""
    process = start(*arguments, cwd=cwd, **options)
    out, err = process.communicate(timeout=300)
    return Result(process.returncode, out, err)
