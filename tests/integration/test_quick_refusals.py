"""Help, and what is refused at a glance, come without reading torch, which takes seconds."""

import subprocess
import sys

import pytest

ASKED = """
import atexit, sys
atexit.register(lambda: print("torch" in sys.modules, file=sys.__stdout__))
from propos.cli import main
main()
"""


def ask(cwd, *words):
    return subprocess.run([sys.executable, "-c", ASKED, *words], cwd=cwd, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "nothing/"], "nothing/: no such file or folder; give a folder of images"),
        (["run", ".", "-k", "1"], "-k 1: at least 2 clusters are needed to tell images apart"),
        (["run", ".", "--set", "psl.wieght=1"], "--set: unknown key psl.wieght: did you mean psl.weight?"),
        (["inspect", "nothing"], "nothing: no such file or folder; give a folder of images"),
        (["suggest-k", "nothing"], "nothing: no such file or folder; give a folder of images"),
        *(
            ([*words, "nothing", *more], "nothing: there is no such folder; propos run SOURCE says where it writes")
            for words, more in (
                (["report"], []),
                (["export", "--to", "csv", "-o", "x.csv"], []),
                (["predict", "-o", "x.csv"], ["."]),
            )
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_said_without_torch(tmp_path, words, said):
    done = ask(tmp_path, *words)
    assert (done.returncode, done.stderr, done.stdout) == (2, f"propos: {said}\n", "False\n")


def test_help_comes_without_torch(tmp_path):
    done = ask(tmp_path, "run", "--help")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "False"
