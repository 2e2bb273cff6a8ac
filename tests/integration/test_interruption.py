"""Runs that are killed, stopped or run out of disk, in processes of their own."""

import json
import shutil
import signal

import pytest

from helpers.command import run, start
from helpers.hold import Hold
from helpers.interruption import checkpoints, results
from helpers.small import QUICK, as_flags, save_digits

pytestmark = pytest.mark.full

# A checkpoint after each of an epoch's three steps, and one that closes it.
ARGUMENTS = [*as_flags({**QUICK, "train.checkpoint_minutes": 1e-6}), "--no-report"]
# One after the other: with nothing written, with all but the name, before the checkpoint of a line of history,
# with a checkpoint too many, among the results.
MOMENTS = [
    "checkpoint/.000002-*.part",
    "checkpoint/000004-*",
    "history.jsonl",
    "checkpoint/000003-*",
    "model.safetensors",
    "clusters.parquet",
]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return save_digits(tmp_path_factory.mktemp("images") / "digits.npz")


@pytest.fixture(scope="module")
def uninterrupted(images):
    out = images.parent / "whole"
    assert run("run", images, *ARGUMENTS, "--out", out, "--quiet").code == 0
    return results(out)


def held(folder, moment, *arguments):
    """Start a run and wait until it is at a moment; return it and what lets it continue."""
    folder.mkdir()
    hold = Hold(folder, moment)
    process = start("run", *arguments, "--quiet", hold=hold)
    hold.reached(process)
    return process, hold


def stop(folder, images, number=signal.SIGINT):
    """Ask a run to end while it writes its third checkpoint; return its folder and what it said."""
    out = folder / "stopped"
    process, hold = held(folder / "hold", "checkpoint/000003-*", images, *ARGUMENTS, "--out", out)
    process.send_signal(number)
    hold.go_on()
    _, err = process.communicate()
    assert process.returncode == 130
    return out, err


@pytest.fixture(scope="module")
def stopped(images, tmp_path_factory):
    return stop(tmp_path_factory.mktemp("stopped"), images)[0]


def test_a_run_killed_again_and_again_ends_with_the_same_bits(images, uninterrupted, tmp_path):
    out = tmp_path / "run"
    arguments = [images, *ARGUMENTS, "--out", out]
    for number, moment in enumerate(MOMENTS):
        process, _ = held(tmp_path / str(number), moment, *arguments)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        arguments = ["--resume", "--out", out]
    result = run("run", *arguments, "--quiet")
    assert result.code == 0, result.err
    assert result.err == ""
    assert results(out) == uninterrupted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_run_saves_prints_how_to_resume_and_resumes(images, uninterrupted, tmp_path, number):
    out, err = stop(tmp_path, images, number)
    assert err.count("\n") == 1
    assert f"propos run --resume --out {out}" in err
    assert json.loads((out / "run.json").read_text())["status"] == "interrupted"
    result = run("run", "--resume", "--out", out)
    assert result.code == 0, result.err
    assert results(out) == uninterrupted
    assert "nothing to resume" in run("run", "--resume", "--out", out).out


def test_a_full_disk_ends_the_run_in_one_line_and_keeps_the_checkpoint(stopped, uninterrupted, tmp_path):
    out = shutil.copytree(stopped, tmp_path / "run")
    kept = checkpoints(out)
    # Too small for another checkpoint.
    result = run("run", "--resume", "--out", out, "--quiet", largest_file=20_000)
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert "File too large; free some space" in result.err
    assert f"propos run --resume --out {out}" in result.err
    assert checkpoints(out) == kept
    assert not list(out.rglob("*.part"))
    assert run("run", "--resume", "--out", out, "--quiet").code == 0
    assert results(out) == uninterrupted


def test_resuming_on_changed_images_or_threads_is_noticed(images, tmp_path):
    source = save_digits(tmp_path / "mine.npz", 100)
    out, _ = stop(tmp_path, source)
    info = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**info, "threads": 64}))
    result = run("run", "--resume", "--out", out, "--quiet")
    assert result.code == 0
    assert "started with threads 64" in result.err
    (out / "run.json").write_text(json.dumps({**info, "status": "interrupted"}))
    save_digits(tmp_path / "mine.npz", 101)
    result = run("run", "--resume", "--out", out)
    assert result.code == 2
    assert "not those the run started with" in result.err
