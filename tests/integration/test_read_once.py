"""Images that are read once, for a frozen network's features, are decoded then; only the features are kept."""

import csv
import json

import numpy as np
import pytest
from torch.nn.modules.module import register_module_forward_hook

from helpers.command import command
from helpers.pretrained import pictures, random_weights
from propos import run as propos_run
from propos.data import clean_caches, list_caches, open_folder
from propos.data.cache.store import cache_folder
from propos.networks import FrozenBackbone
from propos.runs import Run

DAMAGED = "red/3.png"


pytestmark = pytest.mark.usefixtures("cache_of_module")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A run of 24 pictures, one of which is cut short behind its header."""
    folder = tmp_path_factory.mktemp("once")
    pictures(folder / "photos")
    random_weights(folder / "weights.pth")
    cut = folder / "photos" / DAMAGED
    cut.write_bytes(cut.read_bytes()[:2000])
    _run(folder, folder / "run")
    return folder


def _run(folder, out):
    return propos_run(folder / "photos", 3, out=out, weights=folder / "weights.pth", quiet=True, report=False)


def test_only_features_are_kept(here):
    (kept,) = list_caches()
    assert (kept.images, kept.complete) == (23, True)
    assert (cache_folder() / kept.key / "images.npy").stat().st_size == 128 + 23 * 1280 * 4
    assert json.loads((here / "run/run.json").read_text())["source"]["streamed"]


def test_a_damaged_image_is_left_out_and_listed(here):
    names = Run.open(here / "run").table.images
    assert len(names) == 23
    assert DAMAGED not in names
    with (here / "run/skipped.csv").open(newline="") as file:
        assert [row["image"] for row in csv.DictReader(file)] == [DAMAGED]


@pytest.mark.full
def test_a_second_run_computes_no_features_and_ends_the_same(here, tmp_path):
    first, passed = Run.open(here / "run"), set()
    hook = register_module_forward_hook(lambda module, *_: passed.add(type(module)))
    try:
        again = _run(here, tmp_path / "again")
    finally:
        hook.remove()
    assert FrozenBackbone not in passed
    assert again.table.images == first.table.images
    assert np.array_equal(again.embeddings, first.embeddings)
    assert [name for name, _ in again.skipped] == [DAMAGED]


@pytest.mark.full
def test_its_page_has_pictures_and_new_images_are_predicted(here, tmp_path, capsys):
    result = command(capsys, "report", here / "run", "--quiet")
    assert (result.code, result.err) == (0, "")
    assert list((here / "run/report").glob("sheet-*"))
    result = command(capsys, "predict", here / "run", here / "photos", "-o", tmp_path / "new.csv", "--quiet")
    assert result.code == 0, result.err
    with (tmp_path / "new.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    first = Run.open(here / "run").table
    assert [row["image"] for row in rows] == first.images
    assert [int(row["cluster"]) for row in rows] == first.cluster.tolist()


@pytest.mark.full
def test_a_run_that_found_its_images_decoded_knows_them_when_they_are_decoded_again(here, tmp_path, capsys):
    clean_caches()
    open_folder(here / "photos", 256, 3, shaped=True)
    run = _run(here, tmp_path / "cached")
    assert not json.loads((tmp_path / "cached/run.json").read_text())["source"]["streamed"]
    assert run.table.images == Run.open(here / "run").table.images
    clean_caches()
    capsys.readouterr()
    result = command(capsys, "report", tmp_path / "cached", "--quiet")
    assert (result.code, result.err) == (0, "")
    assert list((tmp_path / "cached/report").glob("sheet-*"))
