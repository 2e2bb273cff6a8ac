"""Cached features of a frozen network."""

import numpy as np
import torch

from helpers.pretrained import random_weights
from propos.common.progress import show_nothing
from propos.data import from_array, list_caches
from propos.networks import FrozenBackbone, read_pretrained
from propos.runner.recipes.pretrained import pretrained
from propos.training.features import prepare_inputs


def test_fused_and_plain_features_are_equal_and_have_caches_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    pixels = np.random.default_rng(0).integers(0, 256, (10, 64, 64, 3), dtype=np.uint8)
    source, cpu = from_array(pixels, name="ten"), torch.device("cpu")
    weights = read_pretrained(None, random_weights(tmp_path / "weights.pth"))

    def features(backbone):
        inputs = prepare_inputs(pretrained(), source, cpu, show_nothing, frozen_backbone=backbone)
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
