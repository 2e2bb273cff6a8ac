"""Predictions by two processes: the table of one process, byte for byte, also after a kill and on two machines."""

import os
import signal

import numpy as np
import pytest
from sklearn.datasets import load_digits

from helpers import command, torchrun
from helpers.hold import SCRIPT, Hold
from helpers.pretrained import pictures, random_weights
from helpers.small import QUICK, as_flags, save_digits
from propos import run as propos_run

ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A run of few digits, 1,797 digits as new images, which are four blocks, and one process's table of them."""
    folder = tmp_path_factory.mktemp("predict")
    images = save_digits(folder / "digits.npz")
    result = command.run("run", "--no-report", images, *as_flags(QUICK), "--out", folder / "run", "--quiet", env=ALONE)
    assert result.code == 0, result.err
    digits = load_digits()
    np.savez(folder / "new.npz", images=(digits.images * 15.9).astype(np.uint8), labels=digits.target)
    for ending in ("csv", "parquet"):
        result = command.run("predict", *new(folder), "-o", folder / f"one.{ending}", env=ALONE)
        assert result.code == 0, result.err
    return folder


def new(folder):
    return folder / "run", folder / "new.npz", "--quiet"


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_two_processes_write_the_table_of_one(here, tmp_path, ending):
    result = torchrun.run_pair("predict", *new(here), "-o", tmp_path / f"two.{ending}")
    assert (result.code, result.err) == (0, "")
    assert (tmp_path / f"two.{ending}").read_bytes() == (here / f"one.{ending}").read_bytes()
    assert names(tmp_path) == {f"two.{ending}"}


def test_an_output_that_exists_is_refused_once(here, tmp_path):
    (tmp_path / "two.csv").write_text("mine")
    result = torchrun.run_pair("predict", *new(here), "-o", tmp_path / "two.csv")
    assert result.code == 2
    assert result.err.count("propos: ") == 1
    assert (tmp_path / "two.csv").read_text() == "mine"


@pytest.mark.full
def test_torchrun_restarts_a_killed_prediction_at_its_block(here, tmp_path):
    hold = Hold(tmp_path, "00000001.block")  # the first process has stored one of its two blocks
    options = ("--standalone", "--max-restarts=1", "--monitor-interval=0.1")
    process = torchrun.start(SCRIPT, hold.as_text(), "predict", *new(here), "-o", tmp_path / "two.csv", options=options)
    hold.reached(process)
    assert (tmp_path / ".two.csv.parts" / "00000000.block").is_file()
    os.kill(torchrun.children(process)[1], signal.SIGKILL)
    hold.go_on()
    result = torchrun.finish(process)
    assert result.code == 0, result.err
    assert (tmp_path / "two.csv").read_bytes() == (here / "one.csv").read_bytes()
    assert ".two.csv.parts" not in names(tmp_path)


@pytest.mark.full
def test_two_machines_predict_one_table(here, tmp_path):
    options = (f"--rdzv-endpoint=127.0.0.1:{torchrun.port()}", "--rdzv-backend=c10d", "--nnodes=2")
    script = ["-m", "propos", "predict", *new(here), "-o", tmp_path / "two.csv"]
    machines = [torchrun.start(*script, options=(*options, "--local-addr=127.0.0.1"), processes=1) for _ in range(2)]
    ended = [torchrun.finish(machine) for machine in machines]
    assert [result.code for result in ended] == [0, 0], [result.err for result in ended]
    assert (tmp_path / "two.csv").read_bytes() == (here / "one.csv").read_bytes()
    assert names(tmp_path) == {"two.csv"}


@pytest.mark.full
def test_images_that_another_process_cannot_read_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    pictures(tmp_path / "photos", each=200, width=40, height=32)
    for name in ("blue/3.png", "red/7.png"):  # of the first block and of the second
        cut = tmp_path / "photos" / name
        cut.write_bytes(cut.read_bytes()[:900])
    weights = random_weights(tmp_path / "weights.pth")
    few = pictures(tmp_path / "few", each=8, width=40, height=32)
    propos_run(few, 3, out=tmp_path / "run", weights=weights, quiet=True, report=False, device="cpu")
    arguments = "predict", tmp_path / "run", tmp_path / "photos", "-o"
    one = command.run(*arguments, tmp_path / "one.csv", env={**ALONE, "PROPOS_CACHE": str(tmp_path / "caches")})
    two = torchrun.run_pair(*arguments, tmp_path / "two.csv")
    assert (one.code, two.code) == (0, 0), two.err
    assert [line.split(":")[0] for line in two.err.splitlines()] == ["skipped blue/3.png", "skipped red/7.png"]
    assert two.err == one.err
    assert two.out.splitlines()[-1] == f"598 images: {tmp_path / 'two.csv'}"
    assert (tmp_path / "two.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()


def stopped_before(name, number, folder, *arguments):
    """Start a command in one process, stop it by a signal before it writes a file, and return what it said."""
    (folder / "reached").unlink(missing_ok=True)
    hold = Hold(folder, name)
    process = command.start(*arguments, env=ALONE, hold=hold)
    hold.reached(process)
    process.send_signal(number)
    _, err = process.communicate()
    return err


def blocks(parts):
    return {file.name: file.stat().st_mtime_ns for file in parts.glob("*.block")}


def test_a_command_started_again_continues_with_its_blocks(here, tmp_path):
    arguments, parts = ("predict", *new(here), "-o", tmp_path / "again.csv"), tmp_path / ".again.csv.parts"
    said = stopped_before("00000002.block", signal.SIGINT, tmp_path, *arguments)
    assert said == "propos: stopped; 1,024 of 1,797 images are predicted and kept; the same command continues\n"
    first = blocks(parts)
    assert sorted(first) == ["00000000.block", "00000001.block"]
    damaged = parts / "00000001.block"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    stopped_before("00000002.block", signal.SIGKILL, tmp_path, *arguments)
    second = blocks(parts)
    assert second["00000000.block"] == first["00000000.block"]
    assert second["00000001.block"] > first["00000001.block"]  # the damaged one is predicted again
    result = command.run(*arguments, env=ALONE)
    assert (result.code, result.err) == (0, "")
    assert (tmp_path / "again.csv").read_bytes() == (here / "one.csv").read_bytes()
    assert not parts.exists()


def test_a_command_killed_after_its_table_was_written_ends_when_it_is_started_again(here, tmp_path):
    output, parts = tmp_path / "again.csv", tmp_path / ".again.csv.parts"
    arguments = "predict", *new(here), "-o", output
    stopped_before("table", signal.SIGKILL, tmp_path, *arguments)
    output.write_text("mine")
    assert command.run(*arguments, env=ALONE).err == (
        f"propos: {output}: already exists; refusing to overwrite it: choose another -o\n"
    )
    output.unlink()
    stopped_before("00000000.block", signal.SIGKILL, tmp_path, *arguments)  # all are stored: before it is removed
    assert output.read_bytes() == (here / "one.csv").read_bytes()
    assert parts.exists()
    result = command.run(*arguments, env=ALONE)
    assert (result.code, result.err) == (0, "")
    assert not parts.exists()
