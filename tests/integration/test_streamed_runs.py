"""A run that decoded its images in every epoch, one of them damaged, is read and repeated."""

import json

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

import propos
from helpers.command import command
from helpers.small import QUICK, as_flags

QUICKER = {**QUICK, "train.epochs": 1, "train.warmup": 0, "propos.psl_start": 0, "views.size": 8}


pytestmark = pytest.mark.usefixtures("cache_of_module")


@pytest.fixture(scope="module")
def streamed(tmp_path_factory):
    """A run that had no room to keep its images, one of which cannot be decoded; now there is room again."""
    folder = tmp_path_factory.mktemp("streamed")
    digits = load_digits()
    for number in range(80):
        place = folder / "photos" / str(digits.target[number])
        place.mkdir(parents=True, exist_ok=True)
        # Large enough for the header to be read of a file that is cut short.
        image = np.kron(digits.images[number] * 15, np.ones((9, 9))).astype(np.uint8)
        Image.fromarray(image).save(place / f"{number:03d}.png")
    damaged = next((folder / "photos" / "7").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:80])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROPOS_CACHE_LIMIT", "1KB")
        given = {"labels": "folders", "recipe": "digits", "settings": QUICKER}
        propos.run(folder / "photos", **given, out=folder / "run", report=False, quiet=True)
    assert json.loads((folder / "run/run.json").read_text())["source"]["streamed"]
    assert len((folder / "run/skipped.csv").read_text().splitlines()) == 2
    return folder


def test_the_first_line_counts_the_files_that_are_not_known_to_be_damaged(streamed, capsys, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE_LIMIT", "1KB")
    given = ["--recipe", "digits", "-k", 3, *as_flags(QUICKER)]
    result = command(capsys, "run", streamed / "photos", "--out", streamed / "again", "--no-report", *given)
    assert result.code == 0, result.err
    assert "Finding 3 clusters in 79 image files; results" in result.out
    assert "Skipped files are listed in" in result.out


def test_its_report_has_pictures(streamed, capsys):
    result = command(capsys, "report", streamed / "run", "--quiet")
    assert (result.code, result.err) == (0, "")
    assert list((streamed / "run/report").glob("sheet-*"))


def test_its_images_are_known_to_be_the_same(streamed, capsys):
    result = command(capsys, "evaluate", streamed / "run", "--linear", "fast", "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert (found["linear_train_images"], found["linear_test_images"]) == (64, 16)


def test_an_image_exchanged_for_another_is_noticed(streamed, capsys):
    changed = next((streamed / "photos" / "3").iterdir())
    before = changed.read_bytes()
    Image.fromarray(np.zeros((72, 72), np.uint8)).save(changed)
    try:
        result = command(capsys, "evaluate", streamed / "run", "--linear", "fast")
    finally:
        changed.write_bytes(before)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "not those the run started with" in result.err
