"""Every command on a GPU, which is a stand-in: nothing mixes host and device, and the answers are the CPU's."""

import json
import shutil
from contextlib import contextmanager

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from helpers.command import command
from helpers.gpu import GPU, standing_in
from helpers.interruption import results
from helpers.pretrained import pictures, random_weights
from helpers.runs import write_edits
from helpers.small import QUICK, SHARED, as_flags, digits, save_digits
from propos import run as propos_run
from propos.common.errors import Interrupted
from propos.data import open_source
from propos.runner import Request, execute_plan, plan
from propos.runs import Run
from propos.training import Model
from propos.training.linear_probe import ProbeSettings
from propos.training.probes import LabelledImages, linear_accuracy, probe_draws

KEPT = {"keep_epochs": (1,)}
FAST = as_flags({key: value for key, value in SHARED.items() if key != "train.epochs"})


@pytest.fixture(autouse=True)
def gpu():
    """A machine with a GPU."""
    with standing_in() as gpu:
        yield gpu


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with images, images to test on, and a run of the former that a GPU made with the default precision."""
    folder = tmp_path_factory.mktemp("gpu")
    source = digits(300)
    save_digits(folder / "images.npz", 200)
    np.savez(folder / "test.npz", images=source.images[200:, ..., 0], labels=source.labels[200:])
    with standing_in():
        propos_run(folder / "images.npz", out=folder / "run", quiet=True, report=False, settings={**QUICK, **KEPT})
    return folder


@pytest.fixture
def said(capsys):
    def said(*arguments, device="auto"):
        result = command(capsys, *arguments, "--device", device)
        assert result.code == 0, result.err
        return result.out

    return said


def test_a_run_uses_the_gpu_and_half_precision(folder):
    run = Run.open(folder / "run")
    assert (run.info.device, run.config.train.precision) == ("cuda", "bfloat16")
    assert run.finished


def test_predict_answers_as_on_a_cpu(folder, said, tmp_path):
    for device in ("auto", "cpu"):
        said("predict", folder / "run", folder / "test.npz", "-o", tmp_path / f"{device}.parquet", device=device)
    here, there = (pq.read_table(tmp_path / f"{device}.parquet").to_pydict() for device in ("auto", "cpu"))
    assert here["cluster"] == there["cluster"]
    np.testing.assert_allclose(here["distance"], there["distance"], atol=0.01)  # the backbone is in bfloat16


@pytest.mark.parametrize(
    "asked",
    [
        ["--knn"],
        ["--knn", "--test", "test.npz"],
        pytest.param(["--linear", "fast"], marks=pytest.mark.full),
        pytest.param(["--linear", "fast", "--optimiser", "lars", "--test", "test.npz"], marks=pytest.mark.full),
        pytest.param(["--psa-preservation", "--test", "test.npz"], marks=pytest.mark.full),
        pytest.param(["-k", "4", "--test", "test.npz"], marks=pytest.mark.full),
        pytest.param(["--snapshot", "1"], marks=pytest.mark.full),
    ],
    ids=" ".join,
)
def test_evaluate_measures_as_on_a_cpu(folder, said, asked):
    asked = [str(folder / word) if word.endswith(".npz") else word for word in asked]
    here, there = (
        json.loads(said("evaluate", folder / "run", *asked, "--json", device=device)) for device in ("auto", "cpu")
    )
    assert here.keys() == there.keys()
    for name, value in there.items():
        assert here[name] == pytest.approx(value, abs=0.05), name


def test_the_papers_linear_probe_learns_from_crops_on_the_gpu(folder):
    """One epoch of it: the command's 90 take too long here."""
    model, source = Model.from_run(Run.open(folder / "run"), GPU), open_source(folder / "test.npz")
    classes = torch.from_numpy(source.labels).to(GPU)
    shown = LabelledImages(source, torch.arange(len(source)), classes)
    accuracy = linear_accuracy(model, shown, shown, probe_draws(model.config), True, ProbeSettings(epochs=1))
    assert 0 < accuracy <= 1


@pytest.mark.full
def test_suggest_k_and_a_run_without_a_number_choose_one(folder, said, tmp_path):
    np.save(tmp_path / "unlabelled.npy", digits().images[..., 0])
    asked = [tmp_path / "unlabelled.npy", "-k", "2..6", *as_flags(QUICK)]
    suggested = json.loads(said("suggest-k", *asked, "--json"))
    said("run", *asked, "--out", tmp_path / "run", "--no-report", "--quiet")
    assert len(Run.open(tmp_path / "run").prototypes.ids) == suggested["chosen"]


@pytest.mark.full
def test_compare_runs_its_cells(folder, said, tmp_path):
    said("compare", folder / "images.npz", "--methods", "byol,kmeans-pixels", "--epochs", 1, "--out", tmp_path, *FAST)
    assert "2 of 2" not in (tmp_path / "compare.md").read_text()
    cells = [Run.open(tmp_path / "cells" / name) for name in ("byol-0", "kmeans-pixels-0")]
    assert [cell.info.device for cell in cells] == ["cuda", "cuda"]


def stopped_after(steps):
    """Return a way to stop that says so after a number of questions."""
    asked = iter(range(steps))

    @contextmanager
    def stopping():
        yield lambda: next(asked, None) is None

    return stopping


def stopped_and_resumed(request, out, steps):
    with plan(request) as planned, pytest.raises(Interrupted):
        execute_plan(planned, out, stopping=stopped_after(steps))
    assert propos_run(resume=True, out=out, quiet=True, report=False).finished
    return results(out)


@pytest.mark.full
def test_a_resumed_run_ends_as_if_it_was_not_stopped(folder, tmp_path):
    given = Request(source=folder / "images.npz", settings={**QUICK, **KEPT})
    assert stopped_and_resumed(given, tmp_path / "run", 6) == results(folder / "run")


@pytest.mark.full
def test_a_run_resumes_on_a_cpu_what_a_gpu_began(folder, tmp_path):
    given = Request(source=folder / "images.npz", settings={**QUICK, **KEPT})
    with plan(given) as planned, pytest.raises(Interrupted):
        execute_plan(planned, tmp_path / "run", stopping=stopped_after(6))
    assert propos_run(resume=True, out=tmp_path / "run", device="cpu", quiet=True, report=False).finished


@pytest.mark.full
def test_a_run_continues_from_another_with_its_corrections(folder, tmp_path):
    earlier = shutil.copytree(folder / "run", tmp_path / "earlier")
    moved = [Run.open(earlier).table.images[0]]
    write_edits(
        earlier / "edits.jsonl",
        {"op": "merge", "clusters": [1], "into": 0},
        {"op": "move", "images": moved, "into": 2},
    )
    run = propos_run(folder / "images.npz", out=tmp_path / "run", earlier=earlier, quiet=True, report=False)
    assert run.finished
    assert run.table.cluster[0] == 2


@pytest.mark.full
@pytest.mark.parametrize("learns", ["nothing", "last", "all"])
def test_a_pretrained_start(tmp_path, learns):
    photos = pictures(tmp_path / "photos", each=4)
    weights = random_weights(tmp_path / "weights.pth")
    settings = {"train.batch_size": 12} if learns == "nothing" else {"train.batch_size": 12, "start.learns": learns}
    given = {"weights": weights, "labels": "folders", "quiet": True, "report": False, "settings": settings}
    run = propos_run(photos, 3, out=tmp_path / "run", **given, **({} if learns == "nothing" else {"epochs": 1}))
    assert run.finished
    assert run.info.device == "cuda"
