"""Runs that are killed, stopped or run out of disk, in processes of their own."""

import json
import random
import resource
import signal
import time

import pytest

from helpers.command import run, start
from helpers.interruption import checkpoints, results, wait_for
from helpers.small import QUICK, as_flags, save_digits

# A checkpoint after every step, so that kills land before, in and after the writing of them.
SETTINGS = {**QUICK, "train.epochs": 8, "train.checkpoint_minutes": 1e-6, "network.hidden": 64}
ARGUMENTS = [*as_flags(SETTINGS), "--no-report"]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return save_digits(tmp_path_factory.mktemp("images") / "digits.npz")


@pytest.fixture(scope="module")
def uninterrupted(images):
    out = images.parent / "whole"
    assert run("run", images, *ARGUMENTS, "--out", out, "--quiet").code == 0
    return results(out)


def test_a_run_killed_again_and_again_ends_with_the_same_bits(images, uninterrupted, tmp_path):
    out = tmp_path / "run"
    moments = random.Random(0)
    arguments = ["run", images, *ARGUMENTS, "--out", out, "--quiet"]
    kills = 0
    for _ in range(4):
        process = start(*arguments)
        before = checkpoints(out)
        # Only kill once it has got further, then at a random moment within the next few steps.
        wait_for(lambda before=before: checkpoints(out) - before, process)
        time.sleep(moments.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
        arguments = ["run", "--resume", "--out", out, "--quiet"]
    assert kills >= 2
    result = run(*arguments)
    assert result.code == 0, result.err
    assert result.err == ""
    assert results(out) == uninterrupted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_saves_says_how_to_go_on_and_goes_on(images, uninterrupted, tmp_path, number):
    out = tmp_path / "run"
    process = start("run", images, *ARGUMENTS, "--out", out, "--quiet")
    wait_for(lambda: checkpoints(out), process)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.count("\n") == 1
    assert f"propos run --resume --out {out}" in err
    assert json.loads((out / "run.json").read_text())["status"] == "interrupted"
    result = run("run", "--resume", "--out", out)
    assert result.code == 0, result.err
    assert results(out) == uninterrupted
    assert "nothing to resume" in run("run", "--resume", "--out", out).out


def test_a_full_disk_ends_the_run_in_one_line_and_keeps_the_checkpoint(images, uninterrupted, tmp_path):
    out = tmp_path / "run"
    process = start("run", images, *ARGUMENTS, "--out", out, "--quiet")
    wait_for(lambda: checkpoints(out), process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    kept = checkpoints(out)

    def allow_only_small_files():
        # Too small for another checkpoint.
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    result = run("run", "--resume", "--out", out, "--quiet", preexec_fn=allow_only_small_files)
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
    out = tmp_path / "run"
    process = start("run", source, *ARGUMENTS, "--out", out, "--quiet")
    wait_for(lambda: checkpoints(out), process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    info = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**info, "threads": 64}))
    result = run("run", "--resume", "--out", out, "--quiet")
    assert result.code == 0
    assert "began with threads 64" in result.err
    (out / "run.json").write_text(json.dumps({**info, "status": "interrupted"}))
    save_digits(tmp_path / "mine.npz", 101)
    result = run("run", "--resume", "--out", out)
    assert result.code == 2
    assert "no longer those the run began with" in result.err
