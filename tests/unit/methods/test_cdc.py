"""CDC: which labels are chosen, averages within a batch, initial weights, and a run's two heads."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers.small import digits, quick_config
from propos.methods import stages_of
from propos.methods.cdc import averaged, calibrated_choice, cluster_of, labels_of_confident, prototypes_of, spread
from propos.runner.recipes import build_recipe


def as_released(probabilities):
    """The public code's loop, in numpy; each cluster considers B / K images."""
    images, clusters = probabilities.shape
    considered = images // clusters
    chosen, largest = np.zeros(images), probabilities.max(axis=1)
    for cluster in range(clusters):
        best = np.argsort(-probabilities[:, cluster], kind="stable")[:considered]
        count = int(largest[best].mean() * considered)
        chosen[best[:count]] = 1
    return chosen == 1


@pytest.mark.parametrize("sharpness", [0.5, 2.0, 8.0])
def test_labels_are_chosen_as_in_the_public_code(sharpness):
    logits = sharpness * torch.randn(60, 5, generator=torch.Generator().manual_seed(0))
    probabilities = logits.softmax(dim=1)
    assert calibrated_choice(probabilities).tolist() == as_released(probabilities.double().numpy()).tolist()


def test_a_surer_head_chooses_more():
    """Two images a cluster: at 0.95 one of two is taken (int(0.95 · 2)), at 1 both, at 0.45 none."""
    sure = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert calibrated_choice(sure).all()
    assert calibrated_choice((sure - 0.5) * 0.9 + 0.5).tolist() == [True, False, True, False]
    assert not calibrated_choice(torch.full((9, 3), 0.3)).any()


def test_only_chosen_images_are_learnt():
    logits = torch.tensor([[0.0, math.log(3.0)], [math.log(3.0), 0.0]])
    labels = torch.tensor([1, 1])
    assert float(labels_of_confident(logits, labels, torch.tensor([True, False]))) == pytest.approx(-math.log(0.75))
    assert float(labels_of_confident(logits, labels, torch.tensor([False, False]))) == 0


def test_predictions_are_averaged_over_the_clusters_of_a_batch():
    probabilities = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.2, 0.8]])
    found = averaged(probabilities, torch.tensor([0, 0, 2, 0]))
    torch.testing.assert_close(found[[0, 1, 3]], torch.tensor([[0.4, 0.6]]).expand(3, 2))
    torch.testing.assert_close(found[2], probabilities[2])


def test_the_clusters_of_a_batch_are_found_from_its_first_images():
    angles = torch.tensor([0.0, 1.5, 0.1, 1.6, -0.1, 1.4])
    features = 7 * torch.stack([angles.cos(), angles.sin()], dim=1)
    assert cluster_of(features, 2).tolist() == [0, 1, 0, 1, 0, 1]


def test_initial_weights_are_spread():
    generator = torch.Generator().manual_seed(0)
    weights = F.normalize(torch.rand(6, 10, generator=generator), dim=1)  # all in one orthant, as after a ReLU
    before = (F.normalize(weights, dim=1) @ F.normalize(weights, dim=1).T - torch.eye(6)).max()
    moved = F.normalize(spread(weights, 300), dim=1)
    assert (moved @ moved.T - torch.eye(6)).max() < before - 0.3


def test_weights_start_from_the_clusters_of_the_features():
    points = torch.randn(3, 8, generator=torch.Generator().manual_seed(1)).repeat_interleave(20, dim=0)
    centres = prototypes_of(points + 1e-3 * torch.randn(60, 8), 3, torch.Generator().manual_seed(0))
    standard = F.normalize(points - points.mean(dim=1, keepdim=True), dim=1)
    assert (standard @ centres.T).max(dim=1).values.min() > 0.99
    assert len(prototypes_of(points[:4], 100, torch.Generator().manual_seed(0))) == 2


def test_it_builds_on_moco_and_its_heads_decide():
    stages = stages_of(quick_config(digits(), method="cdc"))
    assert [stage.name for stage in stages] == ["pretext: moco", "calibrating"]
    assert [stage.decides for stage in stages] == ["k-means", "head"]
    config = build_recipe("cdc-cifar-10")
    assert config.train.epochs == 1100
    assert config.sections["cdc"]["heads_lr"] * 500 / 256 == pytest.approx(1e-4)
