"""Requests to end that meet code which takes whatever is raised, and tidying up that takes its time."""

import subprocess
import sys

import pytest

from helpers.hold import PATIENCE

ASKED = """
import os, signal, time

signal.signal(signal.SIGINT, signal.default_int_handler)  # even where the tests themselves are deaf to it
from propos.cli import interrupts

interrupts.INSIST_SECONDS = 0.05
interrupts.raise_on_signals()

def ask():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(10_000):
        time.sleep(0.001)

class Finalised:
    def __del__(self):
        ask()

try:
    {code}
except KeyboardInterrupt:
    print("interrupted")
"""
SWALLOWED = """
    try:
        ask()
    except:
        pass
    time.sleep(60)
    print("went on")
"""
FINALISED = """
    Finalised()
    time.sleep(60)
    print("went on")
"""
TIDYING = """
    try:
        ask()
    finally:
        try:
            raise ValueError
        except ValueError:
            time.sleep(0.5)
        time.sleep(0.5)
        print("tidied up")
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [(SWALLOWED, "interrupted\n"), (FINALISED, "interrupted\n"), (TIDYING, "tidied up\ninterrupted\n")],
    ids=["swallowed", "in a finaliser", "tidying up"],
)
def test_a_request_is_heard_once_and_not_forgotten(code, said):
    program = ASKED.format(code=code.strip())
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == (said, "", 0)


WITHIN_A_TEXT = """
import os, signal, sys, typer

signal.signal(signal.SIGINT, signal.default_int_handler)
from propos.cli import main

# As annotations are, when the command line is put together.
typer.Typer.__call__ = lambda self, **options: eval("kill(getpid(), 2)", vars(os))
sys.argv = ["propos", "recipes"]
main()
"""


def test_a_request_while_a_text_is_evaluated_ends_the_command_and_not_python(tmp_path):
    (tmp_path / "started.py").write_text(WITHIN_A_TEXT)
    command = [sys.executable, "-m", "started"]  # a module, as `python -m propos` is: a script is itself evaluated
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (130, "propos: interrupted\n", "")
