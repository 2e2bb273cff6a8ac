"""`propos reproduce` as a person uses it: listed, killed and started again, divided between processes."""

import json
import signal

import numpy as np
import pytest
import torch

from helpers import torchrun
from helpers.command import command, run, start
from helpers.hold import Hold
from propos.data import from_array
from propos.evaluation.classes import Classes
from propos.evaluation.preservation import Bank, preservation_rates
from propos.methods.seeds import generator
from propos.runs import Run
from propos.study.reproduce.budgets import Budget, task
from propos.study.reproduce.images import source_of
from propos.study.reproduce.items import ITEMS
from propos.study.reproduce.measurements import take_measurements
from propos.study.reproduce.paths import ReproducePaths
from propos.training import Model, choose_device


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    """A data root with nothing in it: stand-ins take the place of all sets."""
    root = tmp_path / "data"
    root.mkdir()
    monkeypatch.setenv("PROPOS_DATA", str(root))
    return root


def tasks(root, name="figure-3", seeds=1):
    return [task(cell, Budget("tiny"), root) for cell in ITEMS[name].cells(seeds)]


def started(out):
    """Return when each finished cell began."""
    return {path.parent.name: json.loads(path.read_text())["started"] for path in out.glob("cells/*/run.json")}


@pytest.mark.full
def test_a_killed_reproduction_runs_only_what_is_missing(tmp_path, no_data):
    out, hold = tmp_path / "out", tmp_path / "hold"
    hold.mkdir()
    first, second = tasks(no_data)
    stop = Hold(hold, f"{second.key}/model.safetensors")
    process = start("reproduce", "figure-3", "--seeds", 1, "--out", out, hold=stop)
    stop.reached(process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = started(out)
    assert set(before) == {first.key, second.key}
    made = (out / "cells" / first.key / "model.safetensors").stat().st_mtime_ns
    again = run("reproduce", "figure-3", "--seeds", 1, "--out", out)
    assert again.code == 0, again.err
    assert "[1/2]" not in again.out
    assert "[2/2]" in again.out
    assert started(out) == before  # the second was resumed
    assert (out / "cells" / first.key / "model.safetensors").stat().st_mtime_ns == made
    assert all(Run.open(out / "cells" / key).finished for key in before)
    for name in ("figure-3.md", "figure-3.csv", "figure-3.svg", "figure-3.png", "index.html"):
        assert (out / name).stat().st_size > 500


@pytest.mark.full
def test_two_processes_divide_the_cells_and_leave_each_others_alone(tmp_path, no_data):
    out, hold = tmp_path / "out", tmp_path / "hold"
    hold.mkdir()
    first, second = tasks(no_data)
    stop = Hold(hold, f"{first.key}/model.safetensors")
    process = start("reproduce", "figure-3", "--seeds", 1, "--out", out, "--cells", "1/2", hold=stop)
    stop.reached(process)
    other = run("reproduce", "figure-3", "--seeds", 1, "--out", out, "--cells", "2/2")
    assert other.code == 0, other.err
    assert Run.open(out / "cells" / second.key).finished
    # A second reproduction of everything leaves to the first what that is about to finish, and says so.
    third = run("reproduce", "figure-3", "--seeds", 1, "--out", out)
    assert third.code == 1
    assert "is training into this folder" in third.err
    assert "1 of 2 cells are finished" in (out / "figure-3.md").read_text()
    before = started(out)
    stop.go_on()
    process.communicate()
    assert process.returncode == 0
    assert started(out) == before
    assert "2 of 2 cells are finished" in (out / "figure-3.md").read_text()


@pytest.mark.full
def test_two_processes_of_torchrun_train_each_cell_together(tmp_path, no_data):
    out = tmp_path / "out"
    result = torchrun.run_pair("reproduce", "figure-3", "--seeds", 1, "--out", out, "--device", "cpu")
    assert result.code == 0, result.err
    runs = [Run.open(out / "cells" / each.key) for each in tasks(no_data)]
    assert [(each.finished, each.info.processes) for each in runs] == [(True, 2), (True, 2)]


@pytest.mark.full
def test_what_is_measured_afterwards_is_what_evaluate_measures(tmp_path, no_data, capsys):
    out = tmp_path / "out"
    assert run("reproduce", "figure-4", "--out", out).code == 0
    (cell,) = tasks(no_data, "figure-4")
    paths = ReproducePaths(out, no_data)
    take_measurements(["clusters", "validation", "outliers"], cell, paths, "cpu")
    read = {path.stem: json.loads(path.read_text()) for path in (out / "readings").glob("*/*.json")}
    # Without noise every neighbour keeps its class, at all three kept epochs.
    assert [kept["0"]["mean"] for kept in read["preservation"].values()] == [1.0, 1.0, 1.0]
    assert all(0 < kept["0.1"]["mean"] < 1 for kept in read["preservation"].values())
    folder = paths.run(cell)
    again = json.loads(command(capsys, "evaluate", folder, "-k", 20, "--json").out)
    assert read["clusters"]["20"]["nmi"] == pytest.approx(again["nmi"])
    other = out / "images" / "digits-for-cifar-10-val-200.npz"
    tested = json.loads(command(capsys, "evaluate", folder, "--test", other, "--json").out)
    assert read["validation"]["nmi"] == pytest.approx(tested["test_nmi"])
    distances = Run.open(folder).table.distance
    assert read["outliers"]["dots"][0] == distances.argmax()
    assert "data:image/png;base64," in (out / "figure-4.svg").read_text()


@pytest.mark.full
def test_what_is_among_the_tested_images_neither_teaches_nor_votes(tmp_path, no_data, capsys):
    out = tmp_path / "out"
    (cell,) = tasks(no_data, "figure-4")
    paths = ReproducePaths(out, no_data)
    with np.load(source_of(cell.images, no_data, paths.images)) as kept:
        images, labels = kept["images"], kept["labels"]
    train = 167  # five sixths of 200
    images[train : train + 20], labels[train : train + 20] = images[:20], labels[:20]
    np.savez(cell.images.file(paths.images), images=images, labels=labels)
    other = out / "images" / "digits-for-cifar-10-val-200.npz"
    np.savez(other, images=np.concatenate([images[100:160], 255 - images[160:]]), labels=labels[100:])
    assert run("reproduce", "figure-4", "--out", out).code == 0
    take_measurements(["linear"], cell, paths, "cpu")
    read = {path.stem: json.loads(path.read_text()) for path in (out / "readings").glob("*/*.json")}
    tested = json.loads(
        command(capsys, "evaluate", paths.run(cell), "--linear", "paper", "--test", other, "--json").out
    )
    assert read["linear"]["train_images"] == tested["linear_train_images"] == 140
    assert read["linear"]["accuracy"] == tested["linear_accuracy"]

    finished = Run.open(paths.run(cell))
    last = max(finished.kept_weights)
    projections = Model.uncorrected(finished, choose_device("cpu"), last).online_projections(from_array(images))
    classes = torch.from_numpy(Classes.from_labels(labels).numbers(labels))
    rates = preservation_rates(
        Bank(projections[20:train], classes[20:train]), projections[train:], 0.1, 20, generator(0, "psa preservation")
    )
    assert read["preservation"][str(last)]["0.1"]["mean"] == pytest.approx(float(rates.mean()))


def test_cells_are_listed_without_training(tmp_path, no_data, capsys):
    out = tmp_path / "out"
    result = command(capsys, "reproduce", "figure-3", "--dry-run", "--out", out)
    assert result.code == 0, result.err
    assert result.out.count("to do") == 6
    assert "6 cells, 0 of them finished" in result.out
    assert not out.exists()
    listed = command(capsys, "reproduce", "table-3", "--budget", "small", "--dry-run").out
    assert listed.count("data not found") == listed.count("tiny-imagenet · tiny-imagenet") >= 5 * 3


def test_what_cannot_be_is_refused_in_a_line(tmp_path, no_data, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "reproduce.json").write_text('{"budget": "paper", "seeds": {}}')
    for arguments, words in [
        (["figure-9"], 'unknown item "figure-9"'),
        (["figure-6a"], "this is figure-7a"),
        (["figure-3", "--cells", "3/2"], "write which of how many shares"),
        (["figure-3", "--out", out], "contains a reproduction with budget paper"),
    ]:
        result = command(capsys, "reproduce", *arguments)
        assert result.code == 2
        assert words in result.err
        assert result.err.count("\n") == 1
