"""The commands on real files: what they write, what they print, how they end."""

import csv
import json
import re
import subprocess
import sys

import numpy as np
import pyarrow.parquet
import pytest
import yaml
from sklearn import metrics

from helpers.command import command, run_anew
from helpers.small import QUICK, as_flags, digits, save_digits

SETTINGS = as_flags(QUICK)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return save_digits(tmp_path_factory.mktemp("images") / "some digits.npz")


@pytest.fixture(scope="module")
def finished(images):
    """A run made by the command as a shell starts it."""
    out = images.parent / "run"
    result = run_anew("run", images, *SETTINGS, "--out", out)
    assert result.code == 0, result.err
    return out, result


def test_a_run_says_what_it_does_and_where_the_results_are(finished):
    out, result = finished
    assert result.out.startswith("Method: ProPos")
    assert "Recipe: digits, chosen for greyscale images of 8×8 on cpu." in result.out
    assert "Finding 10 clusters in 200 images" in result.out
    assert "Training for 3 epochs will take about" in result.out
    assert "epoch 3/3" in result.out
    assert "accuracy" in result.out
    assert f"{out}/clusters.parquet" in result.out
    assert f"propos open {out}\n" in result.out
    assert result.out.rstrip().endswith(f"open {out}/report/index.html")
    assert result.err == ""


def test_a_run_folder_holds_what_is_promised(finished):
    out, _ = finished
    names = {path.name for path in out.iterdir()}
    assert names == {
        "run.json",
        "config.yaml",
        "model.safetensors",
        "prototypes.npy",
        "embeddings.npy",
        "clusters.parquet",
        "history.jsonl",
        "checkpoint",
        "map.npy",
        "tree.json",
        "report",
    }
    assert (out / "report" / "index.html").is_file()
    info = json.loads((out / "run.json").read_text())
    assert info["status"] == "finished"
    assert info["seconds"] > 0
    assert info["threads"] >= 1
    config = yaml.safe_load((out / "config.yaml").read_text())
    assert config["clusters"] == 10
    assert len(config["pixels"]["mean"]) == 1


def test_the_written_config_repeats_the_run(finished, tmp_path, capsys):
    out, _ = finished
    again = tmp_path / "again"
    assert command(capsys, "run", "--config", out / "config.yaml", "--out", again, "--quiet").code == 0
    for name in ("model.safetensors", "embeddings.npy", "prototypes.npy"):
        assert (again / name).read_bytes() == (out / name).read_bytes()
    assert pyarrow.parquet.read_table(again / "clusters.parquet") == pyarrow.parquet.read_table(
        out / "clusters.parquet"
    )


def test_the_epochs_fit_the_time_that_is_given(images, tmp_path, capsys):
    # In a hundredth of a second no machine trains the recipe's hundred epochs.
    arguments = ["run", images, *as_flags({k: v for k, v in QUICK.items() if k != "train.epochs"}), "--time", "0.01s"]
    assert command(capsys, *arguments, "--out", tmp_path / "run", "--quiet").code == 0
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert 1 <= config["train"]["epochs"] < 100  # the recipe's
    assert config["propos"]["psl_start"] <= config["train"]["epochs"]


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_predict_writes_a_table_in_each_format(finished, images, tmp_path, capsys, ending):
    out, _ = finished
    target = tmp_path / f"table.{ending}"
    result = command(capsys, "predict", out, images, "-o", target)
    assert result.code == 0, result.err
    if ending == "csv":
        with target.open(newline="") as file:
            clusters = [int(row["cluster"]) for row in csv.DictReader(file)]
    elif ending == "json":
        clusters = [row["cluster"] for row in json.loads(target.read_text())]
    else:
        clusters = pyarrow.parquet.read_table(target)["cluster"].to_pylist()
    assert clusters == pyarrow.parquet.read_table(out / "clusters.parquet")["cluster"].to_pylist()


def test_predict_takes_new_images_without_labels(finished, tmp_path, capsys):
    out, _ = finished
    np.save(tmp_path / "new.npy", digits(30).images[10:, :, :, 0])
    assert command(capsys, "predict", out, tmp_path / "new.npy", "-o", tmp_path / "new.csv").code == 0
    with (tmp_path / "new.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20
    assert set(rows[0]) == {"id", "image", "cluster", "confidence", "distance"}
    table = pyarrow.parquet.read_table(out / "clusters.parquet")
    assert [int(row["cluster"]) for row in rows] == table["cluster"].to_pylist()[10:30]
    assert [float(row["distance"]) for row in rows] == pytest.approx(table["distance"].to_pylist()[10:30], abs=1e-5)
    assert all(0 < float(row["confidence"]) <= 1 for row in rows)


def test_confidence_is_the_softmax_of_cosines_at_a_tenth(finished):
    out, _ = finished
    cosines = np.load(out / "embeddings.npy") @ np.load(out / "prototypes.npy").T
    powers = np.exp(cosines / 0.1)
    table = pyarrow.parquet.read_table(out / "clusters.parquet")
    own = np.arange(200), np.array(table["cluster"])
    np.testing.assert_allclose(table["confidence"], powers[own] / powers.sum(axis=1), rtol=1e-4)
    np.testing.assert_allclose(table["distance"], 1 - cosines[own], atol=1e-5)
    assert (cosines.argmax(axis=1) == own[1]).all()


def test_evaluate_prints_the_scores_as_json(finished, capsys):
    out, _ = finished
    found = json.loads(command(capsys, "evaluate", out, "--json").out)
    table = pyarrow.parquet.read_table(out / "clusters.parquet")
    labels, clusters = np.array(table["label"]), np.array(table["cluster"])
    assert list(found) == [
        "nmi",
        "ami",
        "ari",
        "accuracy",
        "silhouette",
        "uniformity_std",
        "imbalance_ratio",
        "n_clusters",
        "n_images",
    ]
    assert found["nmi"] == pytest.approx(metrics.normalized_mutual_info_score(labels, clusters))
    assert found["ari"] == pytest.approx(metrics.adjusted_rand_score(labels, clusters))
    embeddings = np.load(out / "embeddings.npy")
    assert found["silhouette"] == pytest.approx(
        metrics.silhouette_score(embeddings, clusters, metric="cosine"), abs=1e-5
    )
    sizes = np.bincount(clusters)
    assert found["imbalance_ratio"] == pytest.approx(sizes.min() / sizes.max())
    assert (found["n_clusters"], found["n_images"]) == (10, 200)
    history = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    assert found["nmi"] == history[-1]["measures"]["nmi"]


def test_evaluate_takes_labels_from_a_file(finished, tmp_path, capsys):
    out, _ = finished
    clusters = pyarrow.parquet.read_table(out / "clusters.parquet")["cluster"].to_pylist()
    path = tmp_path / "labels.csv"
    path.write_text("image,label\n" + "".join(f"{image},class {c}\n" for image, c in enumerate(clusters)))
    found = json.loads(command(capsys, "evaluate", out, "--labels", path, "--json").out)
    assert found["accuracy"] == 1.0
    assert "accuracy" in command(capsys, "evaluate", out).out


def test_evaluate_scores_the_images_that_have_labels(finished, tmp_path, capsys):
    out, _ = finished
    clusters = pyarrow.parquet.read_table(out / "clusters.parquet")["cluster"].to_numpy()
    labels = np.random.default_rng(0).integers(3, size=40)
    path = tmp_path / "some.csv"
    path.write_text("image,label\n" + "".join(f"{image},class {label}\n" for image, label in enumerate(labels)))
    result = command(capsys, "evaluate", out, "--labels", path, "--json")
    assert f"labels for 40 of {len(clusters)} images: scores are computed on these" in result.err
    nmi = metrics.normalized_mutual_info_score(labels, clusters[:40])
    assert json.loads(result.out)["nmi"] == pytest.approx(nmi)
    result = command(capsys, "evaluate", out, "--labels", path, "--knn")
    assert (result.code, result.out) == (2, "")
    assert "give every image of the run a row" in result.err


def test_recipes_are_listed_and_shown(capsys):
    lines = command(capsys, "recipes").out.splitlines()
    assert lines[0].startswith("digits ")
    # What each is for begins in one column, two spaces from the longest name.
    (column,) = {re.match(r"\S+ +", line).end() for line in lines}
    assert column == max(len(line.split()[0]) for line in lines) + 2
    shown = yaml.safe_load(command(capsys, "recipes", "show", "digits").out)
    assert shown["views"]["flip"] == 0.0


def test_a_recipe_is_shown_against_the_paper(capsys):
    lines = command(capsys, "recipes", "show", "imagenet-1k", "--against", "paper").out.splitlines()
    row = {line.split()[0]: line for line in lines}
    assert row["train.batch_size"].split()[1:3] == ["256", "256"]
    assert row["train.warmup"].split()[1:4] == ["10", "≠", "50"]
    assert "released code" in row["train.warmup"]
    of_moco = command(capsys, "recipes", "show", "cifar-10", "--method", "moco", "--against", "paper").out
    assert "≠" not in of_moco.partition("network.momentum ")[2].splitlines()[0]
    assert 'did you mean "moco"?' in command(capsys, "recipes", "show", "digits", "--method", "mocow").err


def test_doctor_names_the_device_and_versions(capsys):
    result = command(capsys, "doctor")
    assert result.code == 0
    assert "torch" in result.out
    assert "threads" in result.out
    assert "fused convolutions (oneDNN)" in result.out


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["recipes"], ["--version"], []])
def test_help_never_imports_torch(arguments):
    code = (
        "import sys; from propos.cli import main; sys.argv = ['propos', *sys.argv[1:]]\n"
        "try: main()\n"
        "except SystemExit as leaving: assert not leaving.code, leaving.code\n"
        "assert 'torch' not in sys.modules and 'sklearn' not in sys.modules"
    )
    result = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "propos" in result.stdout or "digits" in result.stdout
