"""Ctrl-C while images are looked at, decoded or predicted: one line, exit code 130, nothing half-written."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from helpers.awkward import picture
from helpers.command import start, start_anew
from helpers.hold import PATIENCE, Hold, wait_for, wait_for_reader
from helpers.quick import quick_cases
from helpers.small import QUICK, as_flags, digits, quick_train, save_digits
from propos.runs import RunFolder

IMAGES = 100


@pytest.fixture
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped") / "photos"
    folder.mkdir()
    first = folder / "000.jpg"
    picture(28, 28).convert("L").save(first, quality=90)  # small grey images are decoded into a cache
    for number in range(1, IMAGES):
        (folder / f"{number:03d}.jpg").hardlink_to(first)
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    fitted = quick_train(digits(100), train__epochs=1)
    run = RunFolder.create(tmp_path_factory.mktemp("runs") / "run", {"status": "finished"}, fitted.model.config)
    fitted.write(run)
    return run.path


def files(folder):
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def interrupt(photos, written, number, *arguments, **keywords):
    """Interrupt a command while it decodes the last image, some time after it began to write; return what it said."""
    hold = Hold(photos.parent, written)
    process = start(*arguments, hold=hold, **keywords)
    hold.reached(process)
    # The image has been seen and becomes a pipe, on which the decoder waits.
    os.mkfifo(photos.parent / "pipe")
    (photos.parent / "pipe").replace(photos / f"{IMAGES - 1:03d}.jpg")
    hold.go_on()
    held = wait_for_reader(photos / f"{IMAGES - 1:03d}.jpg", process)
    process.send_signal(number)
    _, err = process.communicate()
    os.close(held)
    return process.returncode, err.strip()


@pytest.mark.parametrize(
    ("ending", "number"),
    quick_cases(
        ("csv", signal.SIGINT),
        ("parquet", signal.SIGTERM),
        rest=[("csv", signal.SIGTERM), ("parquet", signal.SIGINT), ("json", signal.SIGINT), ("json", signal.SIGTERM)],
    ),
)
def test_predict_leaves_no_part_of_a_table(photos, finished, tmp_path, number, ending):
    output = tmp_path / f"out.{ending}"
    environment = {**os.environ, "PROPOS_CACHE": str(tmp_path / "caches")}
    said = interrupt(photos, ".out.*.parts", number, "predict", finished, photos, "-o", output, env=environment)
    assert said == (130, "propos: interrupted")
    assert files(tmp_path) == set()
    assert not (tmp_path / f".out.{ending}.parts").exists()


@pytest.mark.parametrize("what", [("inspect",), ("run", "-k", 3, "--out", "run")], ids=["inspect", "run"])
def test_a_cache_being_built_stays_to_be_gone_on_with(photos, tmp_path, what):
    environment = {**os.environ, "PROPOS_CACHE": str(tmp_path / "caches")}
    arguments = [what[0], photos, *what[1:]]
    said = interrupt(photos, "*.building/journal.jsonl", signal.SIGINT, *arguments, cwd=tmp_path, env=environment)
    assert said == (130, "propos: interrupted")
    assert {path.name for path in files(tmp_path)} == {"CACHEDIR.TAG", "images.npy", "journal.jsonl"}
    assert all(path.parts[1].endswith(".building") for path in files(tmp_path))


def listens(process):
    """Tell whether a process has come to the point where it listens to requests to end."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


@pytest.mark.full
@pytest.mark.parametrize("wait", [0.0, 0.3, 1.0])
def test_at_any_moment_there_is_one_line(photos, tmp_path, wait):
    environment = {**os.environ, "PROPOS_CACHE": str(tmp_path / "caches")}
    # It comes to an end of its own only when it may continue.
    hold = Hold(photos.parent, "*.building/journal.jsonl")
    process = start_anew("inspect", photos, cwd=tmp_path, env=environment, hold=hold)
    wait_for(lambda: listens(process), process)
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (130, "propos: interrupted\n")
    assert not [path for path in files(tmp_path) if path.name.endswith(".part")]


INTERRUPT_WITHIN_AN_IMPORT = """
import os, signal, sys

_, module, number, *arguments = sys.argv
signal.signal(signal.SIGINT, signal.default_int_handler)
for heard in (signal.SIGTERM, signal.SIGHUP):  # even where the tests themselves are deaf to it
    signal.signal(heard, signal.SIG_DFL)

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), getattr(signal, number))

sys.meta_path.insert(0, Interrupting())
from propos.cli import main
sys.argv = ["propos", *arguments]
main()
"""


@pytest.mark.parametrize(
    ("module", "number"),
    quick_cases(
        ("numpy.linalg", "SIGINT"),
        rest=[("numpy.linalg", "SIGTERM"), ("numpy.linalg", "SIGHUP"), ("typer", "SIGINT"), ("torch._C", "SIGINT")],
    ),
)
def test_a_request_to_end_within_an_import_waits_for_its_end(finished, tmp_path, module, number):
    images = tmp_path / "images.npy"
    np.save(images, np.zeros((3, 8, 8), np.uint8))
    command = [sys.executable, "-c", INTERRUPT_WITHIN_AN_IMPORT, module, number]
    command += ["predict", str(finished), str(images), "-o", str(tmp_path / "out.csv")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (130, "propos: interrupted\n", "")
    assert not (tmp_path / "out.csv").exists()


def test_what_a_shell_has_a_command_ignore_it_ignores(tmp_path):
    """As nohup does for the terminal's end, and a shell without job control for Ctrl-C."""
    source, out, hold = save_digits(tmp_path / "images.npz"), tmp_path / "run", Hold(tmp_path, "checkpoint/*")
    arguments = ["run", source, *as_flags(QUICK), "--out", out, "--no-report", "--quiet"]
    process = start(*arguments, ignored=(signal.SIGHUP,), hold=hold)
    hold.reached(process)
    process.send_signal(signal.SIGHUP)
    hold.go_on()
    assert process.communicate() == ("", "")
    assert process.returncode == 0
