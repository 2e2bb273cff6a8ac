"""Published sets by name, from the command line."""

import os

import pyarrow.parquet
import pytest
import yaml

from helpers.command import command, run
from helpers.official import cifar_10, imagenet, stl_10
from helpers.small import QUICK, as_flags
from propos.data.published.imagenet import subset

SETTINGS = [*as_flags({**QUICK, "train.epochs": 1, "views.size": 16}), "--no-report"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on a small set of CIFAR-10's layout, named with --data."""
    root = tmp_path_factory.mktemp("data")
    cifar_10(root, per_batch=20)
    out = tmp_path_factory.mktemp("runs") / "run"
    result = run("run", "cifar-10:train", "--data", root, *SETTINGS, "--out", out, cwd=root.parent)
    assert result.code == 0, result.err
    return root, out, result


@pytest.mark.full
def test_a_run_keeps_the_name_and_the_data_root(trained):
    root, out, result = trained
    assert "colour images of 32×32" in result.out
    assert "Finding 10 clusters in 100 images" in result.out
    config = yaml.safe_load((out / "config.yaml").read_text())
    assert (config["source"], config["data"]) == ("cifar-10:train", str(root))
    assert config["pixels"]["mean"] == [0.4914, 0.4822, 0.4465]
    labels = pyarrow.parquet.read_table(out / "clusters.parquet")["label"].to_pylist()
    assert labels[:3] == ["airplane", "automobile", "bird"]


@pytest.mark.full
def test_predict_finds_the_test_split_where_the_run_found_the_training_split(trained, capsys, tmp_path, monkeypatch):
    _, out, _ = trained
    monkeypatch.setenv("PROPOS_DATA", str(tmp_path / "others"))
    result = command(capsys, "predict", out, "cifar-10:test", "-o", tmp_path / "new.csv")
    assert (result.code, result.out.split(":")[0]) == (0, "20 images"), result.err


def test_data_sets_that_were_moved_are_found_through_the_environment(trained, capsys, tmp_path, monkeypatch):
    root, out, _ = trained
    moved = root.rename(tmp_path / "moved")
    try:
        monkeypatch.delenv("PROPOS_DATA", raising=False)
        result = command(capsys, "predict", out, "cifar-10:test", "-o", tmp_path / "new.csv")
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert "set PROPOS_DATA" in result.err
        monkeypatch.setenv("PROPOS_DATA", str(moved))
        result = command(capsys, "predict", out, "cifar-10:test", "-o", tmp_path / "new.csv")
        assert (result.code, result.out.split(":")[0]) == (0, "20 images"), result.err
    finally:
        moved.rename(root)


@pytest.mark.full
def test_the_settings_of_a_run_repeat_it_without_naming_the_data_root(trained, tmp_path):
    _, out, _ = trained
    environment = {key: value for key, value in os.environ.items() if key != "PROPOS_DATA"}
    result = run("run", "--config", out / "config.yaml", "--out", tmp_path / "again", cwd=tmp_path, env=environment)
    assert result.code == 0, result.err
    for name in ("config.yaml", "embeddings.npy"):
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()


def test_datasets_lists_what_is_there_and_what_is_not(capsys, tmp_path):
    cifar_10(tmp_path)
    (tmp_path / "cifar-10-batches-py" / "test_batch").unlink()
    stl_10(tmp_path)
    imagenet(tmp_path / "ILSVRC2012", subset("imagenet-10"), train=2)
    (tmp_path / "cifar-100-python").mkdir()
    (tmp_path / "cifar-100-python" / "train").write_bytes(b"cos\nsystem\n")
    result = command(capsys, "datasets", "--data", tmp_path)
    assert result.code == 0
    lines = {line.split()[0]: line for line in result.out.splitlines()}
    assert "60,000" in lines["cifar-10"]
    assert lines["cifar-10"].endswith(f"incomplete: there is no {tmp_path / 'cifar-10-batches-py' / 'test_batch'}")
    assert lines["cifar-10-lt"].endswith(" images")
    assert "damaged: " in lines["cifar-20"]
    assert "it asks for os.system" in lines["cifar-20"]
    assert lines["stl-10"].endswith("10 images")
    assert lines["imagenet-10"].endswith("20 images")
    assert "incomplete: there is no" in lines["imagenet-dogs"]
    assert lines["mnist"].endswith("–")
    assert result.out.endswith(f"looked under {tmp_path}\n")


def test_datasets_without_a_data_root_says_how_to_give_one(capsys, monkeypatch):
    monkeypatch.delenv("PROPOS_DATA", raising=False)
    result = command(capsys, "datasets")
    assert result.code == 0
    assert "give --data FOLDER, or set PROPOS_DATA" in result.out


@pytest.mark.parametrize(
    ("name", "code", "sentence"),
    [
        ("cifar10", 2, "cifar10: no such data set: did you mean cifar-10?"),
        ("pictures", 2, "pictures: no such data set: choose from cifar-10, cifar-20"),
        ("imagenet-1k", 2, "imagenet-1k: has no public download: get it from https://image-net.org"),
        ("stl-10", 1, "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz: cannot be fetched"),
    ],
)
def test_fetch_says_in_one_sentence_why_it_cannot(capsys, tmp_path, monkeypatch, name, code, sentence):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nothing listens there: no network
    result = command(capsys, "datasets", "fetch", name, "--data", tmp_path)
    assert result.code == code
    assert result.err.startswith(f"propos: {sentence}")
    assert result.err.count("\n") == 1


def test_fetch_leaves_a_set_that_is_there_alone(capsys, tmp_path):
    cifar_10(tmp_path)
    result = command(capsys, "datasets", "fetch", "cifar-10", "--data", tmp_path)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"cifar-10: 72 images in {tmp_path / 'cifar-10-batches-py'}\n"


@pytest.mark.full
def test_inspect_takes_a_name(capsys, tmp_path):
    cifar_10(tmp_path)
    result = command(capsys, "inspect", "cifar-10", "--data", tmp_path, "--device", "cpu")
    assert result.code == 0, result.err
    assert "72 colour" in result.out
    assert "72 of 32×32" in result.out
