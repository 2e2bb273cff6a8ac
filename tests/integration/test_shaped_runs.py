"""Runs on photographs that keep their shape: trained, predicted, shown and streamed alike."""

import csv
import json

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

import propos
from helpers.command import command
from helpers.small import QUICK
from propos.data import open_folder
from propos.review.report.pictures import thumbnail
from propos.runs import Run

QUICKER = {
    **QUICK,
    "train.epochs": 1,
    "train.warmup": 0,
    "propos.psl_start": 0,
    "views.size": 16,
    "views.rotation": 0,
    "views.keep": "shapes",
    "views.plain": "centre",
}


pytestmark = pytest.mark.usefixtures("cache_of_module")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Digits as large images, every other one wide, the rest high, and two runs of them: kept and streamed."""
    folder = tmp_path_factory.mktemp("shaped")
    digits = load_digits()
    (folder / "photos").mkdir()
    for number in range(80):
        high, wide = (9, 12) if number % 2 else (12, 9)
        image = np.kron(digits.images[number] * 15, np.ones((high, wide))).astype(np.uint8)
        Image.fromarray(image).save(folder / "photos" / f"{number:03d}.png")
    given = {"k": 5, "recipe": "digits", "settings": QUICKER, "report": False, "quiet": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROPOS_CACHE_LIMIT", "1KB")
        propos.run(folder / "photos", **given, out=folder / "streamed")
    propos.run(folder / "photos", **given, out=folder / "kept")
    return folder


@pytest.mark.full
def test_kept_and_streamed_runs_end_with_the_same_bits(folder):
    assert json.loads((folder / "streamed/run.json").read_text())["source"]["streamed"]
    assert not json.loads((folder / "kept/run.json").read_text())["source"]["streamed"]
    kept, streamed = (np.load(folder / run / "embeddings.npy") for run in ("kept", "streamed"))
    assert np.array_equal(kept, streamed)


def test_its_own_images_are_put_where_training_put_them(folder, tmp_path, capsys):
    result = command(capsys, "predict", folder / "kept", folder / "photos", "-o", tmp_path / "new.csv", "--quiet")
    assert result.code == 0, result.err
    with (tmp_path / "new.csv").open(newline="") as file:
        clusters = [int(row["cluster"]) for row in csv.DictReader(file)]
    assert clusters == Run.open(folder / "kept").table.cluster.tolist()


def test_its_page_shows_the_middle_of_images_as_they_are_seen(folder, capsys):
    result = command(capsys, "report", folder / "kept", "--quiet")
    assert (result.code, result.err) == (0, "")
    assert list((folder / "kept/report").glob("sheet-*"))
    source = open_folder(folder / "photos", 256, workers=0, shaped=True)
    for position in (0, 1):
        with Image.open(folder / "photos" / f"{position:03d}.png") as image:
            # 96 × 72 or 72 × 96: the middle 72 of both.
            left, top = ((image.width - 72) / 2, (image.height - 72) / 2)
            seen = image.resize((48, 48), Image.Resampling.BICUBIC, box=(left, top, left + 72, top + 72))
        tile = thumbnail(source, source.batch(np.array([position]))[0], position, 48)
        assert np.array_equal(np.asarray(tile), np.asarray(seen))
