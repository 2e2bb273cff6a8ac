"""Cached features of a frozen network."""

import numpy as np
import torch

from helpers.awkward import picture
from helpers.pretrained import random_weights
from propos.common.progress import show_nothing
from propos.data import from_array, list_caches, open_folder, open_streamed
from propos.networks import FrozenBackbone, read_pretrained
from propos.training.features import as_features, features_of


def test_fused_and_plain_features_are_equal_and_have_caches_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    pixels = np.random.default_rng(0).integers(0, 256, (10, 64, 64, 3), dtype=np.uint8)
    source, cpu = from_array(pixels, name="ten"), torch.device("cpu")
    weights = read_pretrained(None, random_weights(tmp_path / "weights.pth"))

    def features(backbone):
        inputs = features_of(backbone, source, cpu, show_nothing)
        return inputs.batch(np.arange(len(source)))

    fused, plain = FrozenBackbone(weights), FrozenBackbone(weights)
    plain.fused = None  # as with a torch that cannot fuse
    assert fused.backend(cpu) != plain.backend(cpu)
    first = features(fused)
    assert len(list_caches()) == 1
    assert np.array_equal(features(fused), first)
    assert len(list_caches()) == 1
    second = features(plain)
    assert len(list_caches()) == 2
    assert np.abs(first - second).max() < 1e-4
    assert first.std() > 0


def test_streamed_photographs_of_which_the_middle_alone_is_decoded_have_the_features_of_whole_ones(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    (tmp_path / "photos").mkdir()
    for number, size in enumerate([(400, 300), (300, 400), (256, 256)]):
        picture(*size, 3, seed=number).save(tmp_path / "photos" / f"{number}.png")
    backbone = FrozenBackbone(read_pretrained(None, random_weights(tmp_path / "weights.pth")))
    positions, cpu = np.arange(3), torch.device("cpu")
    whole = open_folder(tmp_path / "photos", 256, workers=0, shaped=True)
    with open_streamed(tmp_path / "photos", 256, workers=0, shaped=True) as streamed:
        decoded = streamed.batch(positions, backbone.middle_of(streamed.side))
        assert decoded.shape == (3, 3, 224, 224)
        found = as_features(backbone, streamed, cpu).batch(positions)
    expected = as_features(backbone, whole, cpu).batch(positions)
    assert expected.std() > 0
    assert np.abs(found - expected).max() < 0.05 * expected.std()  # pixels differ by one level here and there
