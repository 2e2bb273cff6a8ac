"""Ctrl-C while images are looked at, decoded or predicted: one line, exit code 130, nothing half-written."""

import os
import signal
import time

import pytest

from helpers.awkward import picture
from helpers.command import start
from helpers.small import digits, quick_train
from propos.runs import RunFolder

IMAGES = 1500


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Images large enough to keep the decoders busy for a while."""
    folder = tmp_path_factory.mktemp("stopped") / "photos"
    folder.mkdir()
    first = folder / "0000.jpg"
    picture(1600, 1200).save(first, quality=90)
    for number in range(1, IMAGES):
        (folder / f"{number:04d}.jpg").hardlink_to(first)
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    fitted = quick_train(digits(100), train__epochs=1)
    run = RunFolder.create(tmp_path_factory.mktemp("runs") / "run", {"status": "finished"}, fitted.model.config)
    fitted.write(run)
    return run.path


def files(folder):
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def interrupt(process, ready, number=signal.SIGINT):
    """Wait until a command is at work, interrupt it, and return what it said."""
    end = time.monotonic() + 120
    while not ready() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    return process.returncode, err.strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_predict_leaves_no_part_of_a_table(photos, finished, tmp_path, number, ending):
    output = tmp_path / f"out.{ending}"
    environment = {**os.environ, "PROPOS_CACHE": str(tmp_path / "caches")}
    process = start("predict", finished, photos, "-o", output, env=environment)
    code, said = interrupt(process, lambda: any(tmp_path.glob(".*.part")), number)
    assert (code, said) == (130, "propos: interrupted")
    assert files(tmp_path) == set()


@pytest.mark.parametrize("what", [("inspect",), ("run", "-k", 3, "--out", "run")], ids=["inspect", "run"])
def test_a_cache_being_built_stays_to_be_gone_on_with(photos, tmp_path, what):
    caches = tmp_path / "caches"
    environment = {**os.environ, "PROPOS_CACHE": str(caches)}
    process = start(what[0], photos, *what[1:], cwd=tmp_path, env=environment)
    code, said = interrupt(process, lambda: any(caches.glob("*.building/journal.jsonl")))
    assert (code, said) == (130, "propos: interrupted")
    assert {path.name for path in files(tmp_path)} <= {"images.npy", "journal.jsonl"}
    assert all(path.parts[1].endswith(".building") for path in files(tmp_path))


@pytest.mark.parametrize("wait", [0.3, 0.8, 1.5])
def test_at_any_moment_there_is_one_line(photos, tmp_path, wait):
    environment = {**os.environ, "PROPOS_CACHE": str(tmp_path / "caches")}
    began = time.monotonic()
    process = start("inspect", photos, cwd=tmp_path, env=environment)
    code, said = interrupt(process, lambda: time.monotonic() - began > wait)
    # Before Python has read its own modules a signal ends it in its own way, with a code of its own.
    if "KeyboardInterrupt" not in said:
        assert code in (130, -signal.SIGINT)
        assert said in ("propos: interrupted", "")
    assert not [path for path in files(tmp_path) if path.name.endswith(".part")]
