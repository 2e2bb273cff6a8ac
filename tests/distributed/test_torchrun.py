"""Whole runs on several processes: alike on any number of them, and whatever happens to them or to torchrun."""

import json
import os
import shutil
import signal

import numpy as np
import pyarrow.parquet
import pytest

from helpers import command, forked, torchrun
from helpers.hold import SCRIPT, Hold, wait_for
from helpers.interruption import checkpoints, results
from helpers.small import QUICK, as_flags, save_digits

# A checkpoint after every step; batch norm sees halves of a batch wherever they are.
SETTINGS = {**QUICK, "train.checkpoint_minutes": 1e-6, "network.bn_groups": 2, "keep_epochs": "[1]"}
ARGUMENTS = as_flags(SETTINGS)
ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}
# By then two checkpoints are there.
MOMENT = "checkpoint/000003-*"


def torchruns(*more):
    return ["-m", "propos", "run", "--no-report", *more]


def resumed_by_two(out):
    result = torchrun.run_pair("run", "--no-report", "--resume", "--out", out, "--quiet")
    assert result.code == 0, result.err
    return result


def clusters(out):
    return pyarrow.parquet.read_table(out / "clusters.parquet")["cluster"].to_numpy()


def history(out):
    return [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return save_digits(tmp_path_factory.mktemp("images") / "digits.npz")


@pytest.fixture(scope="module")
def one(images):
    out = images.parent / "one"
    result = command.run("run", "--no-report", images, *ARGUMENTS, "--out", out, "--quiet", env=ALONE)
    assert result.code == 0, result.err
    return out


@pytest.fixture(scope="module")
def two(images):
    out = images.parent / "two"
    result = torchrun.run(*torchruns(images, *ARGUMENTS, "--out", out))
    assert result.code == 0, result.err
    assert result.out.count("Done in") == 1
    assert "warning" not in result.err
    return out


def check_stopped(out, err):
    assert f"propos run --resume --out {out}" in err
    assert err.count("propos: ") == 1
    assert json.loads((out / "run.json").read_text())["status"] == "interrupted"


@pytest.fixture(scope="module")
def stopped(images, tmp_path_factory):
    """A run whose torchrun was asked to end while the first of its two processes wrote its third checkpoint."""
    out = tmp_path_factory.mktemp("stopped") / "run"
    hold = Hold(out.parent, MOMENT)
    script = [SCRIPT, hold.as_text(), "run", "--no-report", images, *ARGUMENTS, "--out", out, "--quiet"]
    process = torchrun.start(*script)
    hold.reached(process)
    process.send_signal(signal.SIGTERM)
    # Torchrun says so when it passes the signal on to each of them.
    wait_for(lambda: process.complaints().count("closing signal SIGTERM") == 2, process)
    hold.go_on()
    check_stopped(out, torchrun.finish(process).err)
    return out


def copied(run, tmp_path):
    return shutil.copytree(run, tmp_path / "run")


def test_one_and_two_processes_end_with_the_same_clusters(one, two):
    assert np.array_equal(clusters(one), clusters(two))
    np.testing.assert_allclose(np.load(one / "embeddings.npy"), np.load(two / "embeddings.npy"), atol=1e-2)
    assert len(history(one)) == len(history(two)) == 4
    for alone, together in zip(history(one), history(two), strict=True):
        assert alone.keys() == together.keys()
        ours, theirs = alone["measures"], together["measures"]
        assert theirs["nmi"] == pytest.approx(ours["nmi"], abs=1e-6)
        assert theirs["uniformity_std"] == pytest.approx(ours["uniformity_std"], rel=1e-3)
    assert json.loads((two / "run.json").read_text())["processes"] == 2


def test_embeddings_kept_on_the_way_are_those_of_all_images(one, two):
    kept = [np.load(run / "snapshots" / "epoch-0001.npy") for run in (one, two)]
    assert kept[0].shape == kept[1].shape == np.load(one / "embeddings.npy").shape
    np.testing.assert_allclose(*kept, atol=1e-2)


@pytest.mark.full
def test_a_signal_to_one_process_ends_all_at_the_same_step(images, two, tmp_path):
    out, hold = tmp_path / "run", Hold(tmp_path, MOMENT)
    pair = torchrun.Pair(forked.command, "run", "--no-report", images, *ARGUMENTS, "--out", out, "--quiet", hold=hold)
    hold.reached(pair)
    pair.processes[1].send_signal(signal.SIGTERM)
    hold.go_on()
    check_stopped(out, pair.communicate()[1])
    resumed_by_two(out)
    assert results(out) == results(two)


@pytest.mark.full
def test_a_run_resumes_on_as_many_processes_with_the_same_bits(two, stopped, tmp_path):
    out = copied(stopped, tmp_path)
    resumed_by_two(out)
    assert results(out) == results(two)


@pytest.mark.full
def test_a_run_of_two_processes_resumes_in_one(one, stopped, tmp_path):
    out = copied(stopped, tmp_path)
    result = command.run("run", "--no-report", "--resume", "--out", out, "--quiet", env=ALONE)
    assert result.code == 0, result.err
    assert "started with processes 2 and is resumed with 1" in result.err
    assert np.array_equal(clusters(out), clusters(one))


@pytest.mark.full
def test_a_run_of_one_process_resumes_in_two(images, one, tmp_path):
    out, hold = tmp_path / "run", Hold(tmp_path, MOMENT)
    settings = ["--no-report", *ARGUMENTS, "--out", out, "--quiet"]
    process = command.start("run", images, *settings, env=ALONE, hold=hold)
    hold.reached(process)
    process.send_signal(signal.SIGINT)
    hold.go_on()
    process.communicate()
    assert "started with processes 1 and is resumed with 2" in resumed_by_two(out).err
    assert np.array_equal(clusters(out), clusters(one))


@pytest.mark.full
def test_torchrun_starts_a_killed_run_again_where_it_was(images, two, tmp_path):
    out, hold = tmp_path / "run", Hold(tmp_path, MOMENT)
    script = [SCRIPT, hold.as_text(), "run", "--no-report", images, *ARGUMENTS]
    options = ("--standalone", "--max-restarts=1", "--monitor-interval=0.1")
    process = torchrun.start(*script, "--out", out, "--quiet", options=options)
    hold.reached(process)
    os.kill(torchrun.children(process)[1], signal.SIGKILL)
    hold.go_on()
    result = torchrun.finish(process)
    assert result.code == 0, result.err
    assert results(out) == results(two)


@pytest.mark.full
def test_two_machines_train_one_model(images, two, tmp_path):
    out = tmp_path / "run"
    options = (f"--rdzv-endpoint=127.0.0.1:{torchrun.port()}", "--rdzv-backend=c10d", "--nnodes=2")
    machines = [
        torchrun.start(
            *torchruns(images, *ARGUMENTS, "--out", out), options=(*options, "--local-addr=127.0.0.1"), processes=1
        )
        for _ in range(2)
    ]
    ended = [torchrun.finish(machine) for machine in machines]
    assert [result.code for result in ended] == [0, 0], [result.err for result in ended]
    assert sorted(result.out.count("Done in") for result in ended) == [0, 1]
    assert results(out) == results(two)


@pytest.mark.full
def test_a_process_that_fails_ends_the_job_with_its_own_error_first(images, stopped, tmp_path):
    out = copied(stopped, tmp_path)
    kept = checkpoints(out)
    # Too small for another checkpoint, which the first process alone writes. That the other does not wait for it in
    # vain, for a quarter of an hour, is in the patience of the tests, which is shorter.
    result = torchrun.run(*torchruns("--resume", "--out", out, "--quiet"), largest_file=20_000)
    assert result.code != 0
    own = [line for line in result.err.splitlines() if line.startswith("propos: ")]
    assert len(own) == 1
    assert "File too large; free some space" in own[0]
    assert "Traceback" not in result.err[: result.err.index(own[0])]
    assert checkpoints(out) == kept


@pytest.mark.full
def test_wrong_input_is_said_once_and_nothing_is_written(images, tmp_path):
    out = tmp_path / "run"
    result = torchrun.run(*torchruns(images, "-k", "1", "--out", out))
    assert result.code != 0
    assert result.err.count("propos: ") == 1
    assert "at least 2 clusters" in result.err
    assert not out.exists()


@pytest.mark.full
def test_one_and_two_processes_learn_the_same_from_corrections(one, tmp_path):
    earlier = copied(one, tmp_path)
    edits = [
        {"op": "merge", "clusters": [1], "into": 0},
        {"op": "split", "images": ["3", "150", "160"], "into": 12},
        {"op": "junk", "images": ["7", "8", "120"]},
        {"op": "move", "images": ["20", "199"], "into": 5},
    ]
    lines = (json.dumps({"v": 1, "id": f"e{number}", **edit}) + "\n" for number, edit in enumerate(edits))
    (earlier / "edits.jsonl").write_text("".join(lines))
    arguments = ["run", "--no-report", "--from", earlier, "--epochs", 2, "--out"]
    alone, together = tmp_path / "alone", tmp_path / "together"
    result = command.run(*arguments, alone, env=ALONE)
    assert result.code == 0, result.err
    assert "5 images keep their corrected cluster; 3 are left out." in result.out
    assert "Its cluster 12 is cluster 1 here." in result.out
    result = torchrun.run_pair(*arguments, together)
    assert result.code == 0, result.err
    assert np.array_equal(clusters(alone), clusters(together))
    assert clusters(together)[[3, 150, 160]].tolist() == [1, 1, 1]  # 12 takes the number that was free
    assert (alone / "edits.jsonl").read_bytes() == (together / "edits.jsonl").read_bytes()
    np.testing.assert_allclose(np.load(alone / "prototypes.npy"), np.load(together / "prototypes.npy"), atol=1e-2)
