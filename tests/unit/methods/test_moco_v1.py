"""MoCo v1: one direction, a linear projector, queries that embed."""

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.steps import arrays, learner_of, losses_of, step_of
from propos.methods import settings_of
from propos.runner.recipes import build_recipe

LABELS = torch.arange(200) % 10


def test_a_query_is_contrasted_with_the_other_views_key_and_the_queue():
    learner = learner_of("moco-v1", **{"moco-v1__queue_size": 96, "network__shuffle_bn": False})
    method = learner.method
    batch, ctx = step_of(learner, LABELS)
    found = losses_of(learner, batch, ctx)
    a, b = batch.views()
    q, k, negatives = arrays(method.online(a), method.target(b), method.queue["vectors"])
    assert found == {"contrast": pytest.approx(oracle.info_nce(q, k, negatives, 0.07), rel=1e-4)}
    for action in ctx.later:
        action()
    assert method.queue["images"][:25].tolist() == [*range(24), -1]
    np.testing.assert_allclose(method.queue["vectors"][0], oracle.unit(k[0]), atol=1e-5)


def test_the_query_encoder_embeds_and_its_projector_is_linear():
    method = learner_of("moco-v1").method
    assert method.embedder is method.online
    assert [type(layer).__name__ for layer in method.online.projector] == ["Linear"]


def test_moco_v1_at_the_papers_scale():
    config = build_recipe("imagenet-1k", "moco-v1")
    settings = settings_of(config)
    assert (settings.temperature, settings.queue_size, config.network.momentum) == (0.07, 65536, 0.999)
    assert (config.train.batch_size, config.train.lr, config.train.schedule) == (256, 0.03, "steps")
