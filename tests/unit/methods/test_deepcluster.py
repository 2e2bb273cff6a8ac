"""DeepCluster: its loss by hand and compared with plain loops; its many clusters, their draws, and the head's."""

import math

import numpy as np
import pytest
import torch

from helpers import oracle
from helpers.small import CPU, digits, quick_config, quick_train
from propos.common.errors import InputError
from propos.data.arrays import ArraySource
from propos.methods.deepcluster import pseudo_label_loss
from propos.training.context import BatchContext
from propos.training.e_step import e_step, embedded_images
from propos.training.learner import build_learner
from propos.training.loop import epoch_batches
from propos.training.m_step import m_step
from propos.training.order import epoch_order
from propos.training.state import first_state


def test_the_loss_equals_plain_loops_in_value_and_gradient():
    labels = [2, -1, 0, 1]

    def softmax(point):
        return np.exp(point) / np.exp(point).sum(axis=1, keepdims=True)

    oracle.check(
        lambda point: pseudo_label_loss(point.softmax(dim=1), torch.tensor(labels)),
        lambda point: oracle.pseudo_labels(softmax(point), labels),
        np.random.default_rng(0).normal(size=(4, 3)),
    )


def test_the_loss_by_hand_and_images_without_a_label_take_no_part():
    probabilities = torch.tensor([[0.5, 0.5], [0.9, 0.1], [0.25, 0.75]])
    # −(log 1/2 + log 1/4) / 2
    assert float(pseudo_label_loss(probabilities, torch.tensor([0, -1, 0]))) == pytest.approx(1.5 * math.log(2))
    assert float(pseudo_label_loss(probabilities, torch.tensor([-1, -1, -1]))) == 0.0


def test_a_certain_mistake_costs_much_and_is_finite():
    assert 50 < float(pseudo_label_loss(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))) < math.inf


def clustered(epoch=0, **settings):
    """Return a learner after an E-step, its state and the images."""
    source = digits()
    learner = build_learner(quick_config(source, method="deepcluster", **settings), source, CPU)
    state = first_state(learner)
    state.epoch = epoch
    cluster(learner, source, state)
    return learner, state, source


def cluster(learner, source, state):
    found = e_step(learner, source, state.epoch, None)
    state.partition = found.partition()
    learner.method.after_clustering(embedded_images(learner, found, state.epoch, None), BatchContext.of(learner, state))


def test_the_loss_of_a_step_is_that_of_both_views_into_the_many_clusters():
    learner, state, source = clustered()
    logits, positions = [], epoch_order(0, 0, learner.schedule)[0]
    learner.method.head.register_forward_hook(lambda _, __, made: logits.append(made.detach()))
    labels = learner.method.memory["labels"][positions].tolist()
    losses = m_step(learner, source, positions, state)
    expected = [oracle.pseudo_labels(each.softmax(dim=1).numpy(), labels) for each in logits]
    assert {*losses} == {"pseudo_labels"}
    assert float(losses["pseudo_labels"]) == pytest.approx(sum(expected) / 2, rel=1e-5)


def test_the_head_is_drawn_again_by_the_epoch_and_its_momenta_are_cleared():
    learner, state, source = clustered()
    head = learner.method.head
    first = {name: tensor.clone() for name, tensor in head.state_dict().items()}
    assert 0.008 < first["1.weight"].std() < 0.012
    assert not first["1.bias"].any()
    online = [parameter.clone() for parameter in learner.method.online.parameters()]
    m_step(learner, source, epoch_order(0, 0, learner.schedule)[0], state)
    assert any(not torch.equal(a, b) for a, b in zip(online, learner.method.online.parameters(), strict=True))
    weight = head[1].weight
    assert learner.optimiser.state[weight]["momentum_buffer"].any()
    state.epoch = 1
    cluster(learner, source, state)
    assert not learner.optimiser.state[weight]["momentum_buffer"].any()
    assert not torch.equal(weight, first["1.weight"])
    state.epoch = 0
    cluster(learner, source, state)
    assert torch.equal(weight, first["1.weight"])  # a function of seed and epoch alone


def test_many_clusters_are_found_and_each_is_drawn_from_equally_often():
    learner, state, source = clustered(overclustering=2)
    labels = learner.method.sampling_labels()
    sizes = torch.bincount(labels, minlength=20)
    assert len(sizes) == 20
    assert sizes.min() > 0
    assert sizes.max() > 2 * sizes.min()  # so that it makes a difference
    drawn = torch.zeros(20)
    for epoch in range(60):
        state.epoch = epoch
        for batch in epoch_batches(learner, source, state):
            drawn += torch.bincount(labels[batch], minlength=20)
    share = drawn / drawn.sum()
    # 11,520 draws: a share of 1/20 is off by 0.002 at a time.
    assert float((share - 1 / 20).abs().max()) < 0.01


def test_images_are_drawn_uniformly_before_there_are_clusters():
    learner = build_learner(quick_config(method="deepcluster"), digits(), CPU)
    assert learner.method.sampling_labels() is None


def test_a_checkpoints_labels_have_to_be_one_an_image_and_the_heads():
    memory = clustered()[0].method.memory
    assert memory.fits("labels", memory["labels"])
    assert not memory.fits("labels", memory["labels"][:-1])
    assert not memory.fits("labels", memory["labels"] + 100)


def test_there_are_never_more_clusters_than_half_of_the_images():
    learner, *_ = clustered(overclustering=50)
    assert learner.method.head[1].out_features == 500
    assert len(learner.method.memory["labels"].unique()) == 100


def test_more_clusters_than_different_images_are_refused():
    images = digits(10).images[np.arange(200) % 10]
    source = ArraySource(images, None, "repeated", 0.0, 16.0)
    message = r"deepcluster.overclustering makes 20 clusters: only 10 images differ; set it smaller"
    with pytest.raises(InputError, match=message):
        quick_config(source, method="deepcluster", clusters=2)


def test_images_that_are_not_clustered_have_no_loss_and_change_nothing():
    learner, state, source = clustered()
    source.unlabelled = digits()
    before = {name: tensor.clone() for name, tensor in learner.method.state_dict().items()}
    assert m_step(learner, source, torch.arange(200, 264), state) == {}
    after = learner.method.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


@pytest.mark.full
def test_the_clusters_are_learnt_until_the_head_is_drawn_again():
    settings = {"overclustering": 1, "train__epochs": 9, "estep__every": 8, "train__schedule": "constant"}
    fitted = quick_train(method="deepcluster", **settings)
    losses = [line["losses"]["pseudo_labels"] for line in fitted.history[:-1]]
    assert losses[7] < losses[0] - 0.03
    assert losses[8] > losses[7]  # the ninth epoch has other clusters and a head that has learnt none
