"""A pretrained network that continues to learn from the clusters it gives; its weights here are drawn at random."""

import csv
import json
import shutil
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from PIL import Image

from helpers import torchrun
from helpers.command import command
from helpers.interruption import results
from helpers.pretrained import pictures, random_weights
from helpers.runs import write_edits
from propos import run as propos_run
from propos.common.errors import Interrupted
from propos.review.export.onnx import OnnxModel
from propos.review.report.settings_text import describe_settings
from propos.runner import Length, Origin, Request, execute_plan, open_run_images, plan
from propos.runs import Run
from propos.training import Model
from propos.training.probes import BackboneFeatures

pytestmark = pytest.mark.full

SETTINGS = {"train.batch_size": 12, "train.lr": 0.5, "start.learns": "last"}
LAST_STAGE = ("--set", "start.learns=last", "--set", "train.batch_size=12")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuning")
    pictures(folder / "photos", width=256, height=256)
    random_weights(folder / "weights.pth", photos=folder / "photos")
    return folder


def tuned(here, out, **more):
    settings = {**SETTINGS, **more.pop("settings", {})}
    given = {"weights": here / "weights.pth", "epochs": 2, **more}
    return propos_run(
        here / "photos", 3, out=out, labels="folders", settings=settings, quiet=True, report=False, **given
    )


@pytest.fixture(scope="module")
def finished(here):
    return tuned(here, here / "run")


@pytest.fixture(scope="module")
def frozen(here):
    return propos_run(
        here / "photos", 3, out=here / "frozen", weights=here / "weights.pth", labels="folders", quiet=True,
        report=False,
    )  # fmt: skip


def test_tuning_begins_with_the_clusters_that_the_frozen_network_gives(finished, frozen):
    first, last = finished.history[0]["measures"], frozen.history[-1]["measures"]
    assert {name: first[name] for name in ("accuracy", "nmi")} == {name: last[name] for name in ("accuracy", "nmi")}
    assert len(finished.history) == 3
    assert set(finished.history[-2]["losses"]) == {"psa", "psl", "total"}
    assert finished.embeddings.shape == (24, 64)
    assert not np.allclose(finished.embeddings, frozen.embeddings, atol=1e-3)  # it learnt


def test_of_the_network_only_what_learns_is_in_the_run_twice(finished):
    parts = [name.replace("target.module.", "target.").split(".") for name in finished.weights()]
    names = {f"{network} {part}" for network, _, part, *_ in parts}
    assert names == {"online top", "online whitening", "target top", "target whitening"}
    assert not [name for name in finished.weights() if "stem" in name]
    assert (finished.path / "backbone.safetensors").is_file()


def test_the_page_says_that_its_last_stage_was_tuned(finished):
    words = dict(describe_settings(finished.config, finished.info, 24, finished.corrected))
    assert words["Network"] == "efficientnet-lite0, pretrained, its last stage trained on these images"
    assert words["Training"].startswith("2 epochs in batches of 12")


def test_new_images_need_nothing_but_the_tuned_run(finished, here, tmp_path, capsys):
    shutil.copytree(here / "run", tmp_path / "moved")
    shutil.copytree(here / "photos", tmp_path / "new")
    (here / "weights.pth").rename(tmp_path / "gone.pth")
    try:
        result = command(capsys, "predict", tmp_path / "moved", tmp_path / "new", "-o", tmp_path / "new.csv")
    finally:
        (tmp_path / "gone.pth").rename(here / "weights.pth")
    assert result.code == 0, result.err
    with (tmp_path / "new.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["cluster"]) for row in rows] == finished.table.cluster.tolist()
    assert [float(row["distance"]) for row in rows] == pytest.approx(finished.table.distance.tolist(), abs=1e-3)


def test_a_linear_probe_learns_from_what_the_tuned_network_makes_of_whole_images(finished, here, capsys):
    model = Model.from_run(finished, torch.device("cpu"))
    with open_run_images(finished) as source:
        probed = BackboneFeatures(model, source, torch.Generator())
        rows = torch.tensor([5, 1, 20])
        torch.testing.assert_close(probed.plain_view_table(rows), model.features(source)[rows])
    result = command(capsys, "evaluate", here / "run", "--linear", "fast", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["linear_train_images"] == 20
    refused = command(capsys, "evaluate", here / "run", "--linear", "paper")
    assert refused.code == 2
    assert refused.err == (
        "propos: --linear paper: efficientnet-lite0 has features of whole images only: use --linear fast\n"
    )


def test_stopped_tuning_resumes_to_the_same_bits(finished, here, tmp_path):
    asked = iter(range(2))

    @contextmanager
    def stopping():
        yield lambda: next(asked, None) is None

    given = Request(
        source=here / "photos",
        clusters=3,
        labels="folders",
        origin=Origin(weights=here / "weights.pth"),
        length=Length(epochs=2),
        settings=SETTINGS,
    )
    with plan(given) as planned, pytest.raises(Interrupted):
        execute_plan(planned, tmp_path / "run", stopping=stopping)
    assert propos_run(resume=True, out=tmp_path / "run", quiet=True, report=False).finished
    assert results(tmp_path / "run") == results(here / "run")


def test_what_is_handed_on_as_onnx_answers_as_the_tuned_run(finished, here):
    portable = OnnxModel(Model.from_run(finished, torch.device("cpu"))).eval()
    # The shorter side is 256 already: what the network sees is the middle of 224.
    files = [here / "photos" / name for name in finished.table.images[:6]]
    pixels = np.stack([np.asarray(Image.open(file))[16:240, 16:240] for file in files])
    with torch.no_grad():
        cluster, _, embedding = portable(torch.from_numpy(pixels))
    assert cluster.tolist() == finished.table.cluster[:6].tolist()
    np.testing.assert_allclose(embedding.numpy(), finished.embeddings[:6], atol=1e-3)


def tuned_from(capsys, run, out, *flags, epochs=1):
    common = ["--epochs", epochs, "--no-report", "--quiet", "--out", out]
    result = command(capsys, "run", "--from", run, *flags, *common)
    assert result.code == 0, result.err
    return Run.open(out)


def test_tuning_continues_a_run(frozen, tmp_path, capsys):
    after = tuned_from(capsys, frozen.path, tmp_path / "tuned", *LAST_STAGE, "--set", "train.lr=1e-6")
    assert (after.table.cluster == frozen.table.cluster).mean() > 0.9
    assert after.config.method == "propos"
    tuned_from(capsys, tmp_path / "tuned", tmp_path / "again")


def test_tuning_learns_from_what_people_corrected(frozen, here, tmp_path, capsys):
    folder = shutil.copytree(here / "frozen", tmp_path / "corrected")
    names = frozen.table.images
    red, blue = (int(frozen.table.cluster[names.index(f"{colour}/0.png")]) for colour in ("red", "blue"))
    edits = [
        {"op": "move", "images": ["green/0.png"], "into": red},
        {"op": "junk", "images": ["blue/2.png", "blue/3.png"]},
        {"op": "rename", "cluster": blue, "name": "sea"},
    ]
    write_edits(folder / "edits.jsonl", *edits)
    after = tuned_from(capsys, folder, tmp_path / "tuned", *LAST_STAGE, "--set", "train.lr=0.5", epochs=2)
    now = after.corrected
    where = dict(zip(now.table.images, now.table.cluster.tolist(), strict=True))
    assert [where[name] for name in ("green/0.png", "blue/2.png", "blue/3.png")] == [red, -1, -1]
    assert now.names()[blue] == "sea"
    mean = after.embeddings[now.table.cluster == blue].mean(axis=0)  # junk has no part in it
    prototype = now.prototypes.vectors[now.prototypes.ids.tolist().index(blue)]
    np.testing.assert_allclose(prototype, mean / np.linalg.norm(mean), atol=1e-4)
    assert not np.allclose(after.embeddings, frozen.embeddings, atol=1e-3)  # it learnt


def test_two_processes_tune_as_one_does(finished, here, tmp_path):
    flags = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    flags += ["-k", 3, "--weights", here / "weights.pth", "--labels", "folders", "--epochs", 2]
    result = torchrun.run_pair("run", here / "photos", *flags, "--no-report", "--quiet", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    shared = Run.open(tmp_path / "run")
    assert shared.info.processes == 2
    assert shared.table.cluster.tolist() == finished.table.cluster.tolist()
    np.testing.assert_allclose(shared.embeddings, finished.embeddings, atol=1e-3)
    for alone, together in zip(finished.history[:-1], shared.history[:-1], strict=True):
        assert together["losses"] == pytest.approx(alone["losses"], abs=1e-3)


def test_the_whole_network_is_trained_if_that_is_set(here, tmp_path, capsys):
    settings = {"start.learns": "all", "start.norms": "learnt"}
    run = tuned(here, tmp_path / "run", epochs=1, settings=settings)
    assert [name for name in run.weights() if name.startswith("online.backbone.top.stem")]
    assert not (tmp_path / "run" / "backbone.safetensors").exists()
    result = command(capsys, "predict", tmp_path / "run", here / "photos", "-o", tmp_path / "new.csv")
    assert result.code == 0, result.err
    with (tmp_path / "new.csv").open(newline="") as file:
        assert [int(row["cluster"]) for row in csv.DictReader(file)] == run.table.cluster.tolist()


def test_what_cannot_be_tuned_says_what_to_do(here, tmp_path, capsys):
    flags = ["--set", "start.learns=last", "--start", "scratch", "--out", tmp_path / "run"]
    result = command(capsys, "run", here / "photos", "-k", 3, *flags)
    assert result.code == 2
    assert "only ProPos trains a pretrained network further" in result.err
