import pytest
import torch

from helpers.small import CPU, digits, quick_config
from propos.training.learner import build_learner, trained_parameters
from propos.training.optimiser import set_rates


def learner(**settings):
    return build_learner(quick_config(**settings), digits(), CPU)


def rates(learner, step):
    set_rates(learner.optimiser, learner.schedule, step)
    return [group["lr"] for group in learner.optimiser.param_groups]


def test_the_predictor_follows_the_schedule_at_its_own_rate():
    propos = learner()
    for step in (0, 4, 8):
        rate = propos.schedule.learning_rate(step)
        assert rates(propos, step) == pytest.approx([rate, 10 * rate])


def test_simsiams_predictor_keeps_its_rate():
    simsiam = learner(method="simsiam")
    peak = simsiam.config.train.lr * 64 / 256
    assert [rates(simsiam, step)[1] for step in (0, 4, 8)] == pytest.approx([peak] * 3)
    assert rates(simsiam, 8)[0] < peak / 2


def test_a_constant_schedule_stays_at_its_peak():
    cc = learner(method="cc")
    assert isinstance(cc.optimiser, torch.optim.Adam)
    assert [rates(cc, step)[0] for step in (3, 8)] == pytest.approx([3e-4 * 64 / 256] * 2)


def test_without_decay_of_norms_only_matrices_decay():
    propos = learner(train__decay_norms=False)
    decays = {group["weight_decay"]: group["params"] for group in propos.optimiser.param_groups[:2]}
    assert {parameter.ndim > 1 for parameter in decays[5e-4]} == {True}
    assert {parameter.ndim for parameter in decays[0.0]} == {1}
    count = sum(len(group["params"]) for group in propos.optimiser.param_groups)
    assert count == len(trained_parameters(propos.method))
