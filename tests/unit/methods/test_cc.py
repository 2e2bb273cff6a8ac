"""CC, and CC's parts with BYOL and with prototype scattering."""

import pytest
import torch

from helpers import oracle
from helpers.steps import arrays, learner_of, losses_of, step_of
from propos.methods import settings_of, stages_of
from propos.methods.setup import Setup
from propos.networks import BatchNorm
from propos.runner.recipes import build_recipe

LABELS = torch.arange(200) % 10


def assignments(method, views):
    return arrays(*(method.assign(method.online.backbone(view)).softmax(dim=1) for view in views))


@pytest.mark.parametrize("name", ["cc", "byol-cc"])
def test_clusters_are_contrasted_by_columns_and_balanced_in_both_views(name):
    learner = learner_of(name, **{f"{name}__cluster_temperature": 0.7})
    batch, ctx = step_of(learner, LABELS)
    losses = losses_of(learner, batch, ctx)
    ya, yb = assignments(learner.method, batch.views())
    assert losses["cluster_contrast"] == pytest.approx(oracle.nt_xent(ya.T, yb.T, 0.7), rel=1e-4)
    balance = oracle.cluster_balance(ya) + oracle.cluster_balance(yb)
    assert losses["cluster_balance"] == pytest.approx(balance, rel=1e-3)


@pytest.mark.parametrize("name", ["cc", "cc-psl", "simclr"])
def test_images_are_contrasted_by_projections(name):
    learner = learner_of(name, **{f"{name}__temperature": 0.3})
    batch, ctx = step_of(learner, LABELS)
    found = losses_of(learner, batch, ctx)["contrast"]
    za, zb = arrays(*(learner.method.online(view) for view in batch.views()))
    assert found == pytest.approx(oracle.nt_xent(za, zb, 0.3), rel=1e-4)


@pytest.mark.parametrize("name", ["byol", "byol-cc"])
def test_predictions_are_aligned_with_the_targets_of_the_other_view(name):
    learner = learner_of(name)
    batch, ctx = step_of(learner, LABELS)
    method, (a, b) = learner.method, batch.views()
    found = losses_of(learner, batch, ctx)["alignment"]
    pa, pb = arrays(*(method.predictor(method.online(view)) for view in (a, b)))
    ta, tb = arrays(method.target(a), method.target(b))
    assert found == pytest.approx((oracle.alignment(pa, tb) + oracle.alignment(pb, ta)) / 2, rel=1e-4)


def test_cc_psl_scatters_prototypes_between_the_online_views_once_it_has_started():
    learner = learner_of(
        "cc-psl", **{"cc-psl__psl_start": 2, "cc-psl__psl_weight": 0.4, "cc-psl__psl_temperature": 0.2}
    )
    assert learner.stage.first_clusters == 2
    assert list(losses_of(learner, *step_of(learner, LABELS, epoch=1))) == ["contrast"]
    assert list(losses_of(learner, *step_of(learner, LABELS, epoch=2, clustered=False))) == ["contrast"]
    batch, ctx = step_of(learner, LABELS, epoch=2)
    found = losses_of(learner, batch, ctx)["psl"]
    za, zb = arrays(*(learner.method.online(view) for view in batch.views()))
    labels = LABELS[:24].tolist()
    directions = oracle.prototype_scattering(za, zb, labels, 0.2) + oracle.prototype_scattering(zb, za, labels, 0.2)
    assert found == pytest.approx(0.4 * directions / 2, rel=1e-4)


@pytest.mark.parametrize(("name", "start"), [("cifar-10", 50), ("imagenet-1k", 10), ("digits", 50), ("small-grey", 10)])
def test_cc_psl_scatters_prototypes_only_after_as_long_as_a_warm_up(name, start):
    config = build_recipe(name, "cc-psl").with_settings({"clusters": 10})
    assert config.train.warmup == 0
    assert settings_of(config).psl_start == start
    assert stages_of(config)[0].first_clusters == start
    assert settings_of(config.with_epochs(2 * config.train.epochs)).psl_start == 2 * start


def test_cc_psl_without_a_start_or_a_weight():
    kind = type(learner_of("cc-psl").method)
    config = build_recipe("digits", "cc-psl").with_settings({"train.warmup": 3})
    assert kind.stages(kind.Settings(), Setup.of(config))[0].first_clusters == 3
    assert kind.stages(kind.Settings(psl_weight=0.0), Setup.of(config))[0].first_clusters is None


def widths(layers):
    return [layer.out_features for layer in layers if isinstance(layer, torch.nn.Linear)]


def test_cc_at_the_papers_scale():
    config = build_recipe("paper-32", "cc").with_settings({"clusters": 10})
    train = config.train
    assert (train.optimiser, train.lr, train.schedule, train.weight_decay) == ("adam", 3e-4, "constant", 0.0)
    assert (settings_of(config).temperature, settings_of(config).cluster_temperature) == (0.5, 1.0)
    assert config.network.dimension == build_recipe("paper-32", "cc-psl").network.dimension == 128


@pytest.mark.parametrize("name", ["cc", "byol-cc"])
def test_the_cluster_head_is_as_wide_as_the_backbone_and_has_no_batch_norm(name):
    method = learner_of(name).method
    assert widths(method.cluster_head) == [method.online.features, 10]
    assert not any(isinstance(layer, BatchNorm) for layer in method.cluster_head)
    assert method.has_head
