"""Features that two processes compute together: each its share, the same bits as one process, one cache at the end."""

import json

import numpy as np
import pytest

from helpers import torchrun
from helpers.pretrained import pictures, random_weights
from propos import run as propos_run
from propos.data import list_caches
from propos.data.cache.store import cache_folder
from propos.runs import Run

pytestmark = pytest.mark.full


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Pictures for three batches of features, one of them cut short behind its header."""
    pictures(tmp_path / "photos", each=90, width=40, height=32)
    cut = tmp_path / "photos" / "red" / "3.png"
    cut.write_bytes(cut.read_bytes()[:900])
    random_weights(tmp_path / "weights.pth")
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    return tmp_path


def features_kept():
    (kept,) = (each for each in list_caches() if not each.source.startswith("index of "))
    return kept


def test_each_computes_its_share_and_the_features_are_those_of_one_process(here, monkeypatch):
    flags = ["-k", 3, "--weights", here / "weights.pth", "--no-report", "--quiet", "--device", "cpu"]
    result = torchrun.run_pair("run", here / "photos", *flags, "--out", here / "two")
    assert result.code == 0, result.err
    kept = features_kept()  # the parts are gone
    assert kept.complete
    together = (cache_folder() / kept.key / "images.npy").read_bytes()
    described = json.loads((cache_folder() / kept.key / "meta.json").read_text())
    assert (described["images"], described["tried"]) == (269, 270)
    assert [name for name, _ in described["skipped"]] == ["red/3.png"]
    monkeypatch.setenv("PROPOS_CACHE", str(here / "others"))
    alone = propos_run(
        here / "photos", 3, out=here / "one", weights=here / "weights.pth", quiet=True, report=False, device="cpu"
    )
    kept = features_kept()
    assert (cache_folder() / kept.key / "images.npy").read_bytes() == together
    shared = Run.open(here / "two")
    assert shared.table.images == alone.table.images
    assert shared.embeddings == pytest.approx(alone.embeddings, abs=1e-5)
    assert np.array_equal(shared.table.cluster, alone.table.cluster)
