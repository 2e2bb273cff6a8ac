"""A folder of images from scan to prediction, as a person would use it."""

import csv
import json
import signal

import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image

from helpers.awkward import awkward_folder
from helpers.command import command, run, start
from helpers.hold import Hold
from helpers.interruption import results
from helpers.runs import make_run
from helpers.small import QUICK, as_flags, digits

SETTINGS = [*as_flags(QUICK), "--no-report"]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Digits as PNG files in class folders, with one file that is no image."""
    folder = tmp_path_factory.mktemp("photos")
    source = digits(120)
    for number, (image, label) in enumerate(zip(source.images, source.labels, strict=True)):
        (folder / str(label)).mkdir(exist_ok=True)
        Image.fromarray(image[..., 0]).save(folder / str(label) / f"{number:03d}.png")
    (folder / "broken.png").write_bytes(b"no image")
    return folder


@pytest.fixture
def finished(photos, tmp_path, capsys):
    out = tmp_path / "run"
    result = command(capsys, "run", photos, *SETTINGS, "--labels", "folders", "--out", out)
    assert result.code == 0, result.err
    return out, result


def test_a_folder_is_clustered_scored_and_predicted(photos, finished, tmp_path, capsys):
    out, result = finished
    assert "Recipe: digits, chosen for greyscale images of 8×8" in result.out
    assert "1 file was skipped: broken.png" in result.err
    with (out / "skipped.csv").open(newline="") as file:
        assert [row["image"] for row in csv.DictReader(file)] == ["broken.png"]
    table = pyarrow.parquet.read_table(out / "clusters.parquet")
    names = table["image"].to_pylist()
    assert names == sorted(names)
    assert names[0] == "0/000.png"
    assert table["label"].to_pylist() == [name.split("/")[0] for name in names]
    assert json.loads(command(capsys, "evaluate", out, "--json").out)["nmi"] > 0

    predicted = command(capsys, "predict", out, photos, "-o", tmp_path / "all.csv")
    assert predicted.code == 0
    assert f"{len(names)} images: " in predicted.out
    assert "skipped broken.png" in predicted.err
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["image"] for row in rows] == names
    assert [int(row["cluster"]) for row in rows] == table["cluster"].to_pylist()
    one = command(capsys, "predict", out, photos / names[5], "-o", tmp_path / "one.csv")
    assert one.code == 0, one.err
    assert one.out == f"1 image: {tmp_path / 'one.csv'}\n"
    with (tmp_path / "one.csv").open(newline="") as file:
        assert [int(row["cluster"]) for row in csv.DictReader(file)] == [table["cluster"].to_pylist()[5]]


@pytest.mark.full
def test_splits_are_no_classes(photos, tmp_path, capsys):
    """As imagenette and most sets are published: train/CLASS/x.jpg and val/CLASS/y.jpg."""
    for number, image in enumerate(sorted(photos.glob("*/*.png"))):
        place = tmp_path / "set" / ("train" if number % 3 else "val") / image.relative_to(photos)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(image.read_bytes())
    said = "10 classes by folder (0, 1, 2, …); taken for splits, not for classes: train, val"
    assert f"folders        {said} (for --labels folders)\n" in command(capsys, "inspect", tmp_path / "set").out
    out = tmp_path / "split"
    result = command(capsys, "run", tmp_path / "set", *SETTINGS, "--labels", "folders", "--out", out)
    assert f"Labels: {said}.\n" in result.out
    assert "Finding 10 clusters in 120 images" in result.out
    own = command(capsys, "evaluate", out).out
    # The labels are the run's own where none are given, and the same where folders give them again.
    assert command(capsys, "evaluate", out, "--labels", "folders").out == f"Labels: {said}.\n{own}"
    tested = ["evaluate", out, "--labels", "folders", "--test", tmp_path / "set" / "val", "--json"]
    assert json.loads(command(capsys, *tested).out)["test_accuracy"] > 0.1


def test_no_folders_are_no_labels(tmp_path, capsys):
    out = make_run(tmp_path / "run", "digits", [str(number) for number in range(40)], digits(40).images).path
    result = command(capsys, "evaluate", out, "--labels", "folders")
    assert result.code == 2
    assert result.err == f"propos: --labels folders: the images of {out} are not in class folders: give a CSV\n"


@pytest.mark.full
def test_a_folder_trains_as_the_array_of_its_pixels_does(photos, finished, tmp_path, capsys):
    out, _ = finished
    names = pyarrow.parquet.read_table(out / "clusters.parquet")["image"].to_pylist()
    np.save(tmp_path / "same.npy", np.stack([np.asarray(Image.open(photos / name)) for name in names]))
    again = tmp_path / "again"
    assert command(capsys, "run", tmp_path / "same.npy", "-k", 10, *SETTINGS, "--out", again, "--quiet").code == 0
    assert (again / "model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()


def test_an_awkward_folder_trains_and_lists_exactly_what_it_skipped(tmp_path, capsys):
    folder = awkward_folder(tmp_path / "awkward")
    out = tmp_path / "run"
    arguments = ["-k", 3, *SETTINGS, "--set", "views.size=16", "--recipe", "photos", "--set", "train.epochs=1"]
    result = command(capsys, "run", folder.root, *arguments, "--set", "propos.psl_start=0", "--out", out)
    assert result.code == 0, result.err
    with (out / "skipped.csv").open(newline="") as file:
        found = {row["image"] for row in csv.DictReader(file)}
    assert found == set(folder.skipped)
    assert command(capsys, "predict", out, folder.root, "-o", tmp_path / "all.parquet").code == 0
    rows = pyarrow.parquet.read_table(tmp_path / "all.parquet")["image"].to_pylist()
    assert rows == pyarrow.parquet.read_table(out / "clusters.parquet")["image"].to_pylist()


@pytest.mark.full
def test_an_awkward_folder_that_is_stopped_and_resumed_ends_as_if_it_was_not(tmp_path):
    folder = awkward_folder(tmp_path / "awkward")
    settings = ["-k", 3, *SETTINGS, "--recipe", "photos", "--set", "views.size=16", "--set", "propos.psl_start=0"]
    arguments = ["run", folder.root, *settings, "--set", "train.checkpoint_minutes=0.000001", "--quiet", "--out"]
    assert run(*arguments, tmp_path / "whole").code == 0
    hold = Hold(tmp_path, "checkpoint/000002-*")
    process = start(*arguments, tmp_path / "cut", hold=hold)
    hold.reached(process)
    process.send_signal(signal.SIGTERM)
    hold.go_on()
    process.communicate()
    assert process.returncode == 130
    resumed = run("run", "--resume", "--out", tmp_path / "cut", "--quiet")
    assert resumed.code == 0, resumed.err
    with (tmp_path / "cut/skipped.csv").open(newline="") as file:
        assert {row["image"]: row["reason"] for row in csv.DictReader(file)} == folder.skipped
    assert results(tmp_path / "cut") == results(tmp_path / "whole")


@pytest.mark.full
def test_a_folder_too_large_to_keep_trains_to_the_same_bits(photos, finished, tmp_path, monkeypatch, capsys):
    out, _ = finished
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "none"))
    monkeypatch.setenv("PROPOS_CACHE_LIMIT", "1kB")
    result = command(capsys, "run", photos, *SETTINGS, "--labels", "folders", "--out", tmp_path / "streamed")
    assert result.code == 0, result.err
    assert "Images are decoded again whenever they are needed" in result.out
    assert not (tmp_path / "none").exists()
    assert (tmp_path / "streamed/model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()


@pytest.mark.real_data
def test_photographs_go_through_everything(data_root, tmp_path, capsys):
    some = sorted((data_root / "imagenette-160").rglob("*.JPEG"))[::30]
    if len(some) < 20:
        pytest.skip(f"no imagenette-160 under {data_root}")
    (tmp_path / "list.txt").write_text("\n".join(map(str, some)))
    settings = ["--recipe", "photos", *SETTINGS, "--set", "train.epochs=1", "--set", "propos.psl_start=0"]
    result = command(capsys, "run", tmp_path / "list.txt", "-k", 4, *settings, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    table = pyarrow.parquet.read_table(tmp_path / "run/clusters.parquet")
    assert len(table) == len(some)
    predicted = command(capsys, "predict", tmp_path / "run", tmp_path / "list.txt", "-o", tmp_path / "all.parquet")
    assert predicted.code == 0, predicted.err
    assert pyarrow.parquet.read_table(tmp_path / "all.parquet")["cluster"] == table["cluster"]


def test_inspect_says_what_is_there_and_draws_the_views(photos, tmp_path, capsys):
    (photos / "copy.png").write_bytes((photos / "0" / "000.png").read_bytes())
    whole = (photos / "0" / "010.png").read_bytes()
    (photos / "cut.png").write_bytes(whole[: whole.index(b"IDAT") + 8])  # its header can be read
    found = json.loads(command(capsys, "inspect", photos, "--json").out)
    words = command(capsys, "inspect", photos, "--views", tmp_path / "views.png").out
    (photos / "copy.png").unlink()
    (photos / "cut.png").unlink()
    assert found["images"] == 121
    assert found["formats"] == {"PNG": 121}
    assert found["sizes"] == {"8×8": 121}
    assert list(found["skipped"]) == ["broken.png", "cut.png"]
    assert found["duplicates"] == [["0/000.png", "copy.png"]]
    assert found["recipe"] == "digits"
    assert found["seconds"] > 0
    assert found["epochs"] == 500  # as few images as these get five times the recipe's
    assert "recipe         digits, 500 epochs\n" in words
    assert "method         ProPos + contrast + pull\n" in words
    assert f"length         {found['reasons']['length']}\n" in words
    assert (
        f"elsewhere      measured on other images, not a prediction for these: {found['measured_elsewhere']}" in words
    )
    assert "121 greyscale" in words
    with Image.open(tmp_path / "views.png") as picture:
        assert picture.size == (9 * 100 + 8, 8 * 100 + 4)
        assert np.asarray(picture.convert("L")).std() > 20


@pytest.mark.full
def test_inspect_says_how_a_list_was_read(photos, tmp_path, capsys):
    images = [path.relative_to(photos) for path in sorted(photos.glob("*/*.png"))[:6]]
    rows = "".join(f"{photos / image},caf\xe9\n" for image in images)
    (tmp_path / "list.csv").write_bytes(f"image,label\n{rows}".encode("cp1252"))
    said = "list.csv: is not UTF-8: read as Windows-1252"
    assert said in command(capsys, "inspect", tmp_path / "list.csv", "-k", 2).out
    assert said in json.loads(command(capsys, "inspect", tmp_path / "list.csv", "-k", 2, "--json").out)["notes"][0]


@pytest.mark.full
def test_inspect_takes_arrays_too(capsys):
    found = json.loads(command(capsys, "inspect", "digits", "--json").out)
    assert (found["images"], found["sizes"]) == (1797, {"8×8": 1797})


@pytest.mark.full
def test_caches_are_listed_and_cleaned(photos, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "cache"))
    command(capsys, "inspect", photos)
    listed = command(capsys, "cache", "list").out
    assert "120 images" in listed
    assert "1 kept" in listed
    assert "0 deleted" in command(capsys, "cache", "clean", "--days", "1").out
    assert "1 deleted" in command(capsys, "cache", "clean").out
    assert "0 kept" in command(capsys, "cache", "list").out
