"""`propos compare` as a person uses it: killed and started again, grown by a method, refused in a line."""

import csv
import json
import signal
from itertools import combinations
from statistics import fmean, stdev

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from sklearn.metrics import normalized_mutual_info_score

from helpers.command import command, run, start
from helpers.hold import Hold
from helpers.small import SHARED, as_flags, digits, save_digits
from propos.runner import SilentReporter
from propos.runs import Run
from propos.study.compare.request import CompareRequest
from propos.study.compare.state import planned_state, read_state

FAST = as_flags({key: value for key, value in SHARED.items() if key != "train.epochs"})


def compared(source, out, methods, *more):
    return ["compare", source, "--methods", methods, "--out", out, "--device", "cpu", *FAST, *more]


def started(out):
    return {path.parent.name: json.loads(path.read_text())["started"] for path in out.glob("cells/*/run.json")}


def clusters(out, name):
    return pq.read_table(out / "cells" / name / "clusters.parquet")["cluster"].to_numpy()


@pytest.mark.full
def test_a_killed_comparison_runs_only_what_is_missing_and_its_table_is_that_of_the_runs(tmp_path):
    source, out, hold = save_digits(tmp_path / "digits.npz", 120), tmp_path / "out", tmp_path / "hold"
    hold.mkdir()
    stop = Hold(hold, "kmeans-pixels-0/model.safetensors")
    asked = compared(source, out, "byol,kmeans-pixels", "--seeds", 2, "--epochs", 2)
    process = start(*asked, hold=stop)
    stop.reached(process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = started(out)
    assert set(before) == {"byol-0", "kmeans-pixels-0"}
    assert "1 of 4 cells are finished" in (out / "compare.md").read_text()  # what is there is there to read
    again = run(*asked)
    assert again.code == 0, again.err
    assert "byol, seed 0" not in again.out
    assert "[1/3] kmeans-pixels, seed 0" in again.out
    after = started(out)
    assert {name: after[name] for name in before} == before
    _, *rows = csv.reader((out / "compare.csv").read_text().splitlines())
    assert [row[:2] for row in rows] == [["byol", "0"], ["byol", "1"], ["kmeans-pixels", "0"], ["kmeans-pixels", "1"]]
    found = json.loads((out / "compare.json").read_text())
    truth = digits(120).labels
    for each in found["methods"]:
        answers = [clusters(out, f"{each['method']}-{seed}") for seed in (0, 1)]
        nmi = [normalized_mutual_info_score(truth, answer) for answer in answers]
        assert each["mean"]["nmi"] == pytest.approx(fmean(nmi))
        assert each["sd"]["nmi"] == pytest.approx(stdev(nmi))
        between = [normalized_mutual_info_score(*pair) for pair in combinations(answers, 2)]
        assert each["agreement"] == pytest.approx(fmean(between))
        assert f"{fmean(nmi):.3f} ± {stdev(nmi):.3f}" in again.out
        assert f"{fmean(nmi):.3f} ± {stdev(nmi):.3f}" in (out / "compare.md").read_text()
    infos = [Run.open(out / "cells" / name).info for name in after]
    assert [cell["processor_seconds"] > 0 and cell["megabytes"] > 50 for cell in found["cells"]] == [True] * 4
    assert {cell["seconds"] for cell in found["cells"]} == {info.seconds for info in infos}
    assert (out / "compare.svg").read_text().count("byol") == 4  # accuracy, NMI, seconds, memory
    with Image.open(out / "compare.png") as figure:
        assert figure.width > 900

    # A comparison grows by methods and seeds, and by nothing else.
    more = run(*compared(source, out, "kmeans-random", "--seeds", 2, "--epochs", 2))
    assert more.code == 0, more.err
    assert [each["method"] for each in json.loads((out / "compare.json").read_text())["methods"]] == [
        "byol",
        "kmeans-pixels",
        "kmeans-random",
    ]
    other = run(*compared(source, out, "byol", "--seeds", 2, "--epochs", 3))
    assert other.code == 2
    assert "contains a comparison with epochs = 2, not 3: choose another --out" in other.err


@pytest.mark.full
def test_equal_time_is_measured_once_a_method_and_kept_for_all_seeds(tmp_path, capsys):
    source, out = save_digits(tmp_path / "digits.npz", 100), tmp_path / "out"
    asked = compared(source, out, "simclr,kmeans-pixels", "--time", "1s", "--seeds")
    assert command(capsys, *asked, 1).code == 0
    epochs = Run.open(out / "cells" / "simclr-0").config.train.epochs
    assert command(capsys, *asked, 2).code == 0
    assert Run.open(out / "cells" / "simclr-1").config.train.epochs == epochs
    assert "about 1s each" in (out / "compare.md").read_text()


def test_images_without_labels_are_compared_without_scores(tmp_path, capsys):
    source, out = tmp_path / "digits.npy", tmp_path / "out"
    np.save(source, digits(60).images[..., 0])
    asked = compared(source, out, "kmeans-pixels", "--seeds", 2)
    unknown = command(capsys, *asked)
    assert unknown.code == 2
    assert unknown.err.count("\n") == 1
    assert "give the number of clusters, as in -k 10" in unknown.err
    result = command(capsys, *asked, "-k", 5)
    assert result.code == 0, result.err
    assert "The images have no labels, so there are no scores." in result.out
    assert "NMI " not in result.out.partition("\n\n")[0]
    assert "accuracy" not in (out / "compare.md").read_text()
    mean = json.loads((out / "compare.json").read_text())["methods"][0]["mean"]
    assert not mean.keys() & {"accuracy", "nmi"}


def test_cells_are_listed_without_training(tmp_path, capsys):
    source, out = save_digits(tmp_path / "digits.npz", 60), tmp_path / "out"
    result = command(capsys, *compared(source, out, "byol,cc"), "--dry-run")
    assert result.code == 0, result.err
    assert result.out.count("to do") == 6
    assert "6 cells, 0 of them finished" in result.out
    assert not out.exists()


def test_a_listing_tells_only_what_would_be_trained_and_refuses_as_training_does(tmp_path, capsys):
    source, out = save_digits(tmp_path / "digits.npz", 60), tmp_path / "out"
    assert command(capsys, *compared(source, out, "kmeans-pixels", "--seeds", 1)).code == 0
    listed = command(capsys, *compared(source, out, "kmeans-random", "--seeds", 2, "--dry-run"))
    assert listed.out.splitlines() == [
        "finished  kmeans-pixels, seed 0",
        "to do     kmeans-random, seed 0",
        "to do     kmeans-random, seed 1",
        "3 cells, 1 of them finished",
    ]
    other = command(capsys, *compared(source, out, "kmeans-random", "-k", 3, "--dry-run"))
    assert other.code == 2
    assert "contains a comparison with clusters = None, not 3: choose another --out" in other.err
    state = json.loads((out / "settings.json").read_text())
    (out / "settings.json").write_text(json.dumps(state | {"asked": state["asked"] | {"later": 1}}))
    newer = command(capsys, *compared(source, out, "kmeans-pixels"))
    assert newer.code == 2
    assert "contains a comparison with later = 1, not None: choose another --out" in newer.err


def test_two_processes_that_plan_other_methods_for_one_folder_lose_none(tmp_path):
    source, out = save_digits(tmp_path / "digits.npz", 60), tmp_path / "out"
    requests = [
        CompareRequest(str(source), [method], seeds) for method, seeds in (("kmeans-pixels", 2), ("kmeans-random", 1))
    ]
    planned = [planned_state(each, out, "cpu", SilentReporter()) for each in requests]  # neither knows of the other
    for state, each in zip(planned, requests, strict=True):
        state.save(each, out)
    found = read_state(out)
    assert (found.methods, found.seeds) == (["kmeans-pixels", "kmeans-random"], 2)
    assert set(found.fingerprints) == {"kmeans-pixels", "kmeans-random"}


@pytest.mark.full
def test_a_method_that_cannot_be_planned_is_named_and_the_others_run(tmp_path, capsys):
    source, out = save_digits(tmp_path / "digits.npz", 60), tmp_path / "out"
    result = command(capsys, *compared(source, out, "kmeans-features,kmeans-pixels", "--seeds", 1))
    assert result.code == 1
    warned, ended = result.err.splitlines()
    assert warned.startswith("warning: kmeans-features is not compared: ")
    assert "needs a pretrained network" in warned
    assert ended == "propos: not compared: kmeans-features"
    assert Run.open(out / "cells" / "kmeans-pixels-0").finished
    reason = warned.removeprefix("warning: kmeans-features is ")
    assert f"\nkmeans-features  0      {reason}\n" in result.out
    assert f"| kmeans-features | 0 | {reason} |" in (out / "compare.md").read_text()
    assert "1 of 1 cells are finished" in (out / "compare.md").read_text()
    kept = json.loads((out / "compare.json").read_text())
    assert kept["refused"] == {"kmeans-features": reason.removeprefix("not compared: ")}

    # Who asks for others has them, and the row stays; what can be planned by now is.
    state = json.loads((out / "settings.json").read_text())
    (out / "settings.json").write_text(json.dumps(state | {"refused": state["refused"] | {"kmeans-random": "once"}}))
    more = command(capsys, *compared(source, out, "kmeans-random", "--seeds", 1))
    assert more.code == 0, more.err
    assert read_state(out).methods == ["kmeans-pixels", "kmeans-random"]
    assert list(read_state(out).refused) == ["kmeans-features"]
    alone = command(capsys, *compared(source, out, "kmeans-features", "--seeds", 1))
    assert (alone.code, alone.err.count("\n")) == (2, 1)
    del state["refused"]  # as a comparison of before there was such a thing
    (out / "settings.json").write_text(json.dumps(state))
    assert read_state(out).refused == {}


@pytest.mark.parametrize(
    ("methods", "more", "words"),
    [
        ("byol,prpos", [], '--methods prpos: unknown method "prpos": did you mean "propos"?'),
        (" , ", [], "--methods: no methods given"),
        ("byol", ["--time", "5m", "--epochs", 3], "--time and --epochs both set the number of epochs"),
        ("byol", ["--time", "long"], "write it as 45s, 30m or 2h"),
        ("byol", ["--set", "seed=3"], "--set seed: a comparison varies it"),
        ("kmeans-features", [], "needs a pretrained network"),
        ("kmeans-pixels,kmeans-random", ["-k", 61], "61"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_line(tmp_path, capsys, methods, more, words):
    source = save_digits(tmp_path / "digits.npz", 60)
    result = command(capsys, *compared(source, tmp_path / "out", methods, *more))
    assert result.code == 2
    assert words in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_each_method_has_the_settings_that_it_reads():
    given = {"train.lr": 0.1, "propos.sigma": 0.01, "byol.predictor_rate": 2.0, "simclr.temperature": 0.2}
    request = CompareRequest("digits", ["propos", "byol", "dcboost"], settings=given)
    kept = {method: set(request.method_request(method).settings) for method in request.methods}
    # SimCLR is not compared: settings of its section are an error.
    shared = {"train.lr", "simclr.temperature"}
    assert kept == {
        "propos": {*shared, "propos.sigma"},
        "byol": {*shared, "byol.predictor_rate"},
        "dcboost": {*shared, "propos.sigma"},
    }
    on_byol = CompareRequest("digits", ["propos", "dcboost"], settings={**given, "dcboost.pretext": "byol"})
    assert set(on_byol.method_request("dcboost").settings) == {*shared, "byol.predictor_rate", "dcboost.pretext"}


def test_a_folder_of_something_else_is_left_alone(tmp_path, capsys):
    source, out = save_digits(tmp_path / "digits.npz", 60), tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    result = command(capsys, *compared(source, out, "kmeans-pixels"))
    assert result.code == 2
    assert "already exists and contains no comparison" in result.err
    assert [path.name for path in out.iterdir()] == ["mine.txt"]
    (out / "settings.json").write_text('{"asked": 1}')
    assert (
        "not written by this version of propos compare" in command(capsys, *compared(source, out, "kmeans-pixels")).err
    )
