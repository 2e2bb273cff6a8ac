"""Every reading command on run folders of which one file was damaged: a clean result, or one line of what is wrong.

PROPOS_DAMAGES=500 tries so many damages, each with two commands, and a quarter as many on a run that is resumed.
"""

import contextlib
import io
import json
import os
import shutil
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.damage import checkpoint_name, damaged
from helpers.runs import SUGGESTION
from helpers.small import QUICK, digits, save_digits
from propos.cli.app import app
from propos.common.errors import InputError, Interrupted, RunFailed
from propos.review.report import write_report
from propos.runner import Origin, Request, execute_plan, plan
from propos.runs import Run, RunFolder

DAMAGES = int(os.environ.get("PROPOS_DAMAGES", "32"))
COUNT = 40
SMALL = {**QUICK, "network.hidden": 8, "network.dimension": 4, "train.batch_size": 16, "train.epochs": 2}
FINISHED = [
    "run.json", "config.yaml", "history.jsonl", "clusters.parquet", "prototypes.npy", "embeddings.npy", "map.npy",
    "model.safetensors", "suggestion.json", "skipped.csv", "snapshots/epoch-0000.npy",
    "snapshots/epoch-0000.safetensors",
]  # fmt: skip
UNFINISHED = ["run.json", "config.yaml", "history.jsonl", "checkpoint/start.safetensors", "checkpoint/0", "skipped.csv"]
READING = {
    "report": ["report", "RUN"],
    "predict": ["predict", "RUN", "IMAGES", "-o", "OUT/new.csv"],
    "evaluate": ["evaluate", "RUN"],
    "knn": ["evaluate", "RUN", "--knn", "--json"],
    "linear": ["evaluate", "RUN", "--linear", "fast"],
    "psa": ["evaluate", "RUN", "--psa-preservation", "--neighbours", "3"],
    "test": ["evaluate", "RUN", "--test", "OTHERS", "--knn", "--neighbours", "3"],
    "suggest-k": ["suggest-k", "RUN", "-k", "2..4"],
    "from": ["run", "IMAGES", "--from", "RUN", "--out", "OUT/on", "--no-report", "--epochs", "1", "--quiet"],
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a finished run, one that continued it and was stopped, and their images."""
    root = tmp_path_factory.mktemp("damaged")
    images, more = save_digits(root / "images.npz", COUNT), digits(2 * COUNT)
    np.savez(root / "others.npz", images=more.images[COUNT:, ..., 0], labels=more.labels[COUNT:])
    with plan(Request(source=images, clusters=3, recipe="digits", settings={**SMALL, "keep_epochs": (0,)})) as planned:
        execute_plan(planned, root / "finished")
    shutil.rmtree(root / "finished" / "checkpoint")
    folder = RunFolder(root / "finished")
    folder.write_skipped([("notes.txt", "not an image")])
    folder.write_suggestion(SUGGESTION, planned.config)
    write_report(Run.open(folder.path))
    asked = iter(range(4))
    with (
        plan(Request(source=images, origin=Origin(earlier=folder.path), settings={"train.epochs": 2})) as planned,
        pytest.raises(Interrupted),
    ):
        execute_plan(planned, root / "stopped", stopping=lambda: nullcontext(lambda: next(asked, None) is None))
    RunFolder(root / "stopped").write_skipped([("notes.txt", "not an image")])
    return root


def attempt(arguments, run, root, out):
    """Run a command in this process; whatever it raises but its own two errors is a fault."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    put = {"RUN": str(run), "IMAGES": str(root / "images.npz"), "OTHERS": str(root / "others.npz")}
    arguments = [put.get(each, each.replace("OUT", str(out))) for each in arguments]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            app(arguments, standalone_mode=False)
        except (InputError, RunFailed) as error:
            message = str(error)
        else:
            return "clean"
    assert "\n" not in message, message
    assert len(message) < 1_000, message
    return "refused"


def broken(folder, name, rng, into):
    """Copy a run folder with one of its files damaged, and say how."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(folder, into)
    path = next(path for path in sorted(into.rglob("*")) if str(path.relative_to(into)).startswith(name))
    name = str(path.relative_to(into))
    content, words = damaged(name, path.read_bytes(), rng)
    path.unlink()
    if content is not None:
        if name.startswith("checkpoint/0") and rng.random() < 0.8:
            path = into / checkpoint_name(name, content)
        path.write_bytes(content)
    return f"{name}: {words}"


@pytest.mark.full
@settings(max_examples=DAMAGES, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(FINISHED), rng=st.randoms(use_true_random=False), first=st.integers(0, len(READING) - 1))
def test_a_damaged_run_is_read_cleanly_or_refused_in_one_line(folders, name, rng, first):
    words = broken(folders / "finished", name, rng, folders / "copy")
    for command in (list(READING)[first], list(READING)[first - 1]):
        try:
            result = attempt(READING[command], folders / "copy", folders, folders / "out")
        except BaseException as error:
            error.add_note(f"{command} on {words}")
            raise
        _note(f"{command}\t{words}\t{result}")


@pytest.mark.full
@settings(max_examples=DAMAGES // 4, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(UNFINISHED), rng=st.randoms(use_true_random=False))
def test_a_damaged_run_is_resumed_cleanly_or_refused_in_one_line(folders, name, rng):
    words = broken(folders / "stopped", name, rng, folders / "copy")
    arguments = ["run", "--resume", "--out", "RUN", "--no-report", "--quiet"]
    try:
        result = attempt(arguments, folders / "copy", folders, folders / "out")
    except BaseException as error:
        error.add_note(f"resume on {words}")
        raise
    _note(f"resume\t{words}\t{result}")


@pytest.mark.full
def test_the_undamaged_runs_are_read_and_resumed(folders):
    for arguments in READING.values():
        assert attempt(arguments, folders / "finished", folders, folders / "out") == "clean"
    broken_copy = folders / "whole"
    shutil.copytree(folders / "stopped", broken_copy)
    arguments = ["run", "--resume", "--out", "RUN", "--no-report", "--quiet"]
    assert attempt(arguments, broken_copy, folders, folders / "out") == "clean"
    assert Run.open(broken_copy).finished


def _note(line):
    """Where a file is named for it, write down what was tried and what came of it."""
    if path := os.environ.get("PROPOS_DAMAGES_LOG"):
        with open(path, "a") as file:  # noqa: PTH123
            file.write(f"{json.dumps(line)}\n")
