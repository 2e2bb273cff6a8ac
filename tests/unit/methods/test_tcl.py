"""TCL: labels of the most confident images, and a contrast that leaves images with the same label together."""

import hashlib
import math

import numpy as np
import pytest
import safetensors.torch
import torch

from helpers import oracle
from helpers.recipes import built, lengths, of_system, widths
from helpers.small import quick_config, quick_train
from helpers.staged import next_epoch, opened
from propos.common.errors import InputError, Interrupted
from propos.losses import nt_xent
from propos.methods import settings_of
from propos.methods.tcl import confident_images, labelled_contrast
from propos.runs import RunFolder
from propos.training.m_step import m_step

FIRST, SECOND = np.random.default_rng(0).normal(size=(2, 7, 4))
LABELS = torch.tensor([0, 2, 0, -1, 2, 0, -1])


def test_the_contrast_compared_with_plain_loops():
    oracle.check(
        lambda x: labelled_contrast(x, torch.tensor(SECOND), LABELS, 0.5),
        lambda x: oracle.labelled_contrast(x, SECOND, LABELS.tolist(), 0.5),
        FIRST,
    )


def test_the_contrast_by_hand():
    # Three images along the axes, alike in both views: each is told from the four rows of the two others; of the two
    # with the same label, from the two rows of the third.
    axes = torch.eye(3, dtype=torch.float64)
    alone, spared = math.log(1 + 4 * math.exp(-1)), math.log(1 + 2 * math.exp(-1))
    assert float(labelled_contrast(axes, axes, torch.tensor([-1, -1, -1]), 1.0)) == pytest.approx(alone)
    assert float(labelled_contrast(axes, axes, torch.tensor([1, 0, 1]), 1.0)) == pytest.approx((2 * spared + alone) / 3)


def test_without_labels_it_is_the_plain_contrast_to_the_bit():
    first, second = torch.tensor(FIRST), torch.tensor(SECOND)
    nobody = torch.full((7,), -1)
    assert torch.equal(labelled_contrast(first, second, nobody, 0.5), nt_xent(first, second, 0.5))


def test_a_batch_of_one_label_pulls_views_together_and_tells_nothing_apart():
    first = torch.tensor(FIRST, requires_grad=True)
    loss = labelled_contrast(first, torch.tensor(SECOND), torch.zeros(7, dtype=torch.long), 0.5)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert bool(torch.isfinite(first.grad).all())


def assigned(*confidences):
    """Return probabilities of two clusters: a number is that of the first, or, if it is negative, of the second."""
    return torch.tensor([[p, 1 - p] if p > 0 else [1 + p, -p] for p in confidences])


def test_labels_of_confident_images_by_hand():
    # Of eight images in two clusters half are labelled: two of each cluster, if they are confident enough.
    now = assigned(0.99, 0.9, 0.95, 0.97, 0.85, 0.6, -0.7, -0.8)
    assert confident_images(now, 0.5, 0.5).tolist() == [0, -1, -1, 0, -1, -1, 1, 1]
    labels = confident_images(now, 0.5, 0.75)
    assert labels.tolist() == [0, -1, -1, 0, -1, -1, -1, 1]
    # Later image 0 is no longer confident; image 3 is, of another cluster, and keeps its label; 1 and 2 get one.
    later = assigned(0.7, 0.98, 0.99, -0.96, 0.85, 0.6, -0.7, -0.8)
    labels = confident_images(later, 0.5, 0.75, labels)
    assert labels.tolist() == [-1, 0, 0, 0, -1, -1, -1, 1]
    # And nothing changes while the probabilities do not.
    assert torch.equal(confident_images(later, 0.5, 0.75, labels), labels)


def test_with_more_clusters_than_images_each_has_a_label():
    assert confident_images(torch.eye(8, 40), 0.5, 0.0).tolist() == list(range(8))


def test_labels_stay_with_their_images_from_epoch_to_epoch():
    learner, source, state = opened("tcl", train__lr=0.03)
    before = learner.method.tables["labels"].clone()
    assert before.shape == (200,)
    counts = torch.bincount(before[before >= 0], minlength=10)
    assert 0 < int(counts.max()) <= 10  # of 200 images in ten clusters half are ten of each
    for _ in range(3):
        m_step(learner, source, torch.arange(64), state)
    next_epoch(learner, source, state)
    after = learner.method.tables["labels"]
    assert torch.equal(after[before >= 0], before[before >= 0])  # all stay above a threshold of 0.1
    assert int((after >= 0).sum()) > int((before >= 0).sum())  # and others are labelled as the head learns


@pytest.mark.parametrize("change", [lambda labels: labels + 10, lambda labels: labels[:-1]])
def test_labels_of_other_clusters_or_images_are_refused(tmp_path, change):
    settings = {"method": "tcl", "train__epochs": 3}
    run = RunFolder.create(tmp_path / "run", {}, quick_config(**settings))
    asked = iter(range(10))  # three times each after the openings of two epochs, and twice in the third
    with pytest.raises(Interrupted):
        quick_train(run=run, stop=lambda: next(asked, None) is None, **settings)
    newest = max((run.path / "checkpoint").iterdir())
    with safetensors.safe_open(newest, "pt") as file:
        tensors, plain = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    tensors["method.tables.labels"] = change(tensors["method.tables.labels"]).contiguous()
    content = safetensors.torch.save(tensors, plain)
    newest.with_name(f"999999-{hashlib.sha256(content).hexdigest()[:32]}.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"method\.tables\.labels: does not fit the method's memory"):
        quick_train(run=run, **settings)


def test_tcl_has_its_own_settings():
    config = of_system("tcl-cifar-10")
    networks, own = built(config), settings_of(config)
    features = networks.online.features
    assert lengths(config) == [1000, 200]
    assert widths(networks.online.projector) == (features, features, 128)
    assert widths(networks.head) == (features, features, 10)
    train, views = config.train, config.views
    assert (train.optimiser, train.schedule, train.weight_decay, train.warmup) == ("adam", "constant", 1e-4, 0)
    # Four devices of 256 images, each normalising its own, at 1e-4.
    assert (train.batch_size, config.network.bn_groups) == (1024, 4)
    assert train.lr * train.batch_size / 256 == pytest.approx(1e-4)
    assert (own.temperature, own.cluster_temperature, own.confidence) == (0.5, 1, 0.99)
    assert (views.size, views.plain, views.blur, views.crop_scale) == (224, "centre", (1.0, 0.0), (0.2, 1.0))
    assert (views.brightness, views.contrast, views.saturation, views.hue) == (0.4, 0.4, 0.2, 0.1)
    assert (config.strong.operations, config.strong.cutout * 224) == (4, 75)
