"""The memory bank, heads that begin anew, and draws that balance many clusters."""

import numpy as np
import torch

from helpers.small import CPU, digits, quick_config, quick_train
from propos.training.bank import first_bank, moved
from propos.training.e_step import Partition, expectation
from propos.training.learner import begin_anew, build_learner
from propos.training.loop import epoch_batches
from propos.training.m_step import m_step
from propos.training.order import epoch_order
from propos.training.state import first_state


def learner_of(method, **settings):
    source = digits()
    return build_learner(quick_config(source, method=method, **settings), source, CPU), source


def test_a_head_begins_anew_by_the_epoch_and_its_momenta_with_it():
    learner, source = learner_of("deepcluster")
    state = first_state(learner)
    found = expectation(learner, source, 0, None)
    state.partition = found.partition()
    begin_anew(learner, 0)
    first = {name: tensor.clone() for name, tensor in learner.network.cluster_head.state_dict().items()}
    assert 0.008 < first["1.weight"].std() < 0.012
    assert not first["1.bias"].any()
    projector = [parameter.clone() for parameter in learner.network.online.parameters()]
    m_step(learner, source, epoch_order(0, 0, learner.schedule)[0], state)
    assert any(not torch.equal(a, b) for a, b in zip(projector, learner.network.online.parameters(), strict=True))
    weight = learner.network.cluster_head[1].weight
    assert learner.optimiser.state[weight]["momentum_buffer"].any()
    begin_anew(learner, 1)
    assert not learner.optimiser.state[weight]["momentum_buffer"].any()
    assert not torch.equal(weight, first["1.weight"])
    begin_anew(learner, 0)
    assert torch.equal(weight, first["1.weight"])  # a function of seed and epoch alone


def test_many_clusters_are_found_and_each_is_drawn_from_as_often():
    learner, source = learner_of("deepcluster", overclustering__times=2)
    state = first_state(learner)
    state.partition = expectation(learner, source, 0, None).partition()
    (grouping,) = state.partition.groupings
    sizes = torch.bincount(grouping.labels, minlength=20)
    assert len(sizes) == 20
    assert sizes.min() > 0
    assert sizes.max() > 2 * sizes.min()  # so that it makes a difference
    drawn = torch.zeros(20)
    for epoch in range(60):
        state.epoch = epoch
        for batch in epoch_batches(learner, source, state):
            drawn += torch.bincount(grouping.labels[batch], minlength=20)
    share = drawn / drawn.sum()
    # 11,520 draws: a share of 1/20 is off by 0.002 at a time.
    assert float((share - 1 / 20).abs().max()) < 0.01


def test_there_are_never_more_clusters_than_one_for_two_images():
    learner, source = learner_of("deepcluster", overclustering__times=50)
    assert learner.network.cluster_head[1].out_features == 500
    (grouping,) = expectation(learner, source, 0, None).groupings
    assert len(grouping.prototypes) == 100


def test_the_clusters_are_learnt_until_the_head_begins_anew():
    settings = {"overclustering__times": 1, "train__epochs": 9, "estep__every": 8, "train__schedule": "constant"}
    fitted = quick_train(method="deepcluster", **settings)
    losses = [line["losses"]["pseudo_labels"] for line in fitted.history[:-1]]
    assert losses[7] < losses[0] - 0.03
    assert losses[8] > losses[7]  # the ninth epoch has other clusters and a head that knows none
