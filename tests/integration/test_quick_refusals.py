"""Help, and what is refused at a glance, come without reading torch or numpy, which take long."""

import subprocess
import sys

import pytest

from propos.common.names import PUBLISHED
from propos.data import CATALOGUE

ASKED = """
import atexit, sys
atexit.register(lambda: print(*sorted({"numpy", "torch"} & sys.modules.keys()), file=sys.__stdout__))
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
        (["run", ".", "--set", "train.eopchs=1"], "--set: unknown key train.eopchs: did you mean train.epochs?"),
        (["inspect", "nothing"], "nothing: no such file or folder; give a folder of images"),
        (["suggest-k", "nothing"], "nothing: no such file or folder; give a folder of images"),
        *(
            ([*words, "nothing", *more], "nothing: no such folder; propos run SOURCE says where it writes")
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
    assert (done.returncode, done.stderr, done.stdout) == (2, f"propos: {said}\n", "\n")


def test_a_deleted_current_folder_is_one_line(tmp_path):
    shell = f'rmdir "$PWD"; exec "{sys.executable}" -c \'{ASKED}\' inspect {tmp_path}'
    (tmp_path / "gone").mkdir()
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path / "gone", capture_output=True, text=True)
    said = "the current folder was deleted: change to another one (cd)"
    assert (done.returncode, done.stderr, done.stdout) == (2, f"propos: {said}\n", "\n")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("cifar_10:train", "no such file, folder or data set; did you mean cifar-10:train?"),
        ("there/is\n", "no such file or folder; give a folder of images"),
        ("nothing.npy", "no such file"),
    ],
)
def test_what_may_be_meant_otherwise_is_looked_into_without_torch(tmp_path, source, said):
    done = ask(tmp_path, "run", source)
    assert (done.returncode, done.stdout) == (2, "numpy\n")
    assert said in done.stderr


def test_names_that_are_known_early_are_those_of_the_catalogue():
    assert tuple(CATALOGUE) == PUBLISHED


def test_help_comes_without_torch(tmp_path):
    done = ask(tmp_path, "run", "--help")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == ""
