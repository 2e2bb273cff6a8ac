"""PICA: the matching and the balance of heads of both kinds in a step."""

import pytest
import torch

from helpers import oracle
from helpers.recipes import built, of_system, widths
from helpers.small import CPU, digits, quick_config
from propos.methods import settings_of
from propos.training.context import BatchContext
from propos.training.e_step import unassigned
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.state import first_state

BATCH = torch.arange(64)


def step(**settings):
    """Return a method after a step, the step's losses, and the assignments of both views by each kind of head."""
    source = digits()
    learner = build_learner(quick_config(source, method="pica", overclustering=2, **settings), source, CPU)
    state = first_state(learner)
    state.partition = unassigned(200, CPU)
    outputs = {"heads": [], "over_heads": []}
    for name, kept in outputs.items():
        part = getattr(learner.method, name)
        part.register_forward_hook(lambda _, __, made, kept=kept: kept.append(made.detach().double().softmax(dim=2)))
    losses = {name: float(loss) for name, loss in m_step(learner, source, BATCH, state).items()}
    learner.method.end_epoch(BatchContext.of(learner, state))
    return learner.method, losses, {name: [view.numpy() for view in views] for name, views in outputs.items()}


@pytest.mark.parametrize("heads", [1, 3])
def test_clusters_are_matched_and_those_of_the_plain_image_balanced_by_every_head_of_both_kinds(heads):
    method, losses, assigned = step(heads=heads, balance_weight=2.0)
    matching, balance = {}, {}
    for kind, (plain, view) in assigned.items():
        assert plain.shape == (64, heads, 10 if kind == "heads" else 20)
        matching[kind] = [oracle.cluster_matching(plain[:, head], view[:, head]) for head in range(heads)]
        balance[kind] = [oracle.cluster_balance(plain[:, head]) for head in range(heads)]
    assert losses == pytest.approx(
        {
            "clusters": sum(matching["heads"]),
            "balance": 2 * sum(balance["heads"]),
            "over_clusters": sum(matching["over_heads"]),
            "over_balance": 2 * sum(balance["over_heads"]),
        },
        abs=1e-5,
    )
    of_heads = [match + 2 * even for match, even in zip(matching["heads"], balance["heads"], strict=True)]
    assert int(method.heads.chosen) == of_heads.index(min(of_heads))


def test_without_a_weight_there_is_no_balance():
    _, losses, _ = step(balance_weight=0.0)
    assert {*losses} == {"clusters", "over_clusters"}


def test_pica_has_its_own_settings():
    config = of_system("pica-cifar-10")
    networks, train, views = built(config), config.train, config.views
    assert (widths(networks.heads), widths(networks.over_heads)) == ((10,), (70,))
    assert (train.optimiser, train.schedule, train.weight_decay, train.warmup) == ("adam", "constant", 0.0, 0)
    assert train.lr * train.batch_size / 256 == pytest.approx(1e-4)
    assert (views.crop_scale, views.jitter, views.hue, views.grey) == ((0.2, 1.0), 1.0, 0.4, 0.2)
    assert settings_of(config).balance_weight == 2.0
