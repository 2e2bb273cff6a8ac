import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.steps import arrays, learner_of, step_of
from propos.methods.simsiam import negative_cosine
from propos.networks import BatchNorm
from propos.runner.recipes import build_recipe

FIRST, SECOND = np.random.default_rng(0).normal(size=(2, 8, 5))


def test_the_negative_cosine_equals_the_oracle_in_value_and_gradient():
    oracle.check(
        lambda x: negative_cosine(x, torch.tensor(SECOND)),
        lambda x: -np.mean([oracle.cosine(a, b) for a, b in zip(x, SECOND, strict=True)]),
        FIRST,
    )


def test_the_negative_cosine_by_hand():
    # Equal, right-angled and opposite directions: −1, 0 and 1.
    prediction = torch.tensor([[2.0, 0.0], [0.0, 3.0], [1.0, 0.0], [1.0, 0.0]])
    target = torch.tensor([[5.0, 0.0], [1.0, 0.0], [-4.0, 0.0], [1.0, 0.0]])
    assert float(negative_cosine(prediction, target)) == pytest.approx(-0.25)


def test_no_gradient_reaches_the_target():
    target = torch.tensor(SECOND, requires_grad=True)
    negative_cosine(torch.tensor(FIRST, requires_grad=True), target).backward()
    assert target.grad is None


def test_predictions_are_compared_with_the_projections_of_the_other_view():
    learner = learner_of("simsiam")
    batch, ctx = step_of(learner, torch.arange(200) % 10)
    losses, method = learner.method.losses(batch, ctx), learner.method
    views = batch.views()
    za, zb = arrays(*(method.online(view) for view in views))
    pa, pb = arrays(*(method.predictor(method.online(view)) for view in views))
    cosines = [oracle.cosine(p, z) for p, z in zip([*pa, *pb], [*zb, *za], strict=True)]
    assert float(losses["cosine"].detach()) == pytest.approx(-np.mean(cosines), rel=1e-4)
    losses["cosine"].backward()
    assert all(weights.grad is not None for weights in method.parameters())


def test_simsiam_at_the_papers_scale():
    config = build_recipe("paper-32", "simsiam")
    assert (config.network.hidden, config.network.dimension) == (2048, 2048)
    assert config.train.lr * config.train.batch_size / 256 == pytest.approx(0.06)


@pytest.mark.parametrize(("stem", "layers"), [("small", 2), ("imagenet", 3)])
def test_the_projector_ends_in_batch_norm_and_the_predictor_narrows(stem, layers):
    method = learner_of("simsiam", network__stem=stem, views__size=32).method
    projector = [layer for layer in method.online.projector if isinstance(layer, torch.nn.Linear)]
    predictor = [layer for layer in method.predictor if isinstance(layer, torch.nn.Linear)]
    assert [layer.out_features for layer in projector] == [32] * (layers - 1) + [16]
    assert isinstance(method.online.projector[-1], BatchNorm)
    assert [layer.out_features for layer in predictor] == [4, 16]
    assert predictor[0].weight.std() > 0.05  # torch's initial weights, not small ones
    assert method.stages(method.settings, method.setup)[0].rates["predictor"].constant
