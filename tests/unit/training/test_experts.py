"""An expert for each cluster, in a run: their prototypes, their queue, and the view that the gate reads."""

import torch
import torch.nn.functional as F

from helpers.small import CPU, digits, quick_config
from propos.training import Silent, train
from propos.training.embedding import see_batches
from propos.training.e_step import expectation
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.state import first_state

BATCH, EXPERTS, WIDTH = torch.arange(64), 10, 16


def started(**settings):
    source = digits()
    learner = build_learner(quick_config(source, method="mice", **settings), source, CPU)
    state = first_state(learner)
    found = expectation(learner, source, 0, None)
    state.partition = found.partition()
    return learner, source, state, found


def shares_of_the_gate(learner, source):
    seen = see_batches(learner.network, "target", source, learner.config, every_head=True)
    return torch.cat([assigned[:, 0] for *_, assigned in seen])


def by_expert(rows):
    return F.normalize(rows.view(len(rows), EXPERTS, WIDTH), dim=2)


def test_every_expert_has_an_equal_part_in_an_embedding():
    *_, found = started()
    assert found.embeddings.shape == (200, EXPERTS * WIDTH)
    lengths = found.embeddings.view(200, EXPERTS, WIDTH).norm(dim=2)
    torch.testing.assert_close(lengths, torch.full_like(lengths, EXPERTS**-0.5))


def test_a_prototype_is_the_direction_of_what_its_expert_makes_of_its_clusters_images():
    """And of a cluster that has none, of all images, weighed by the gate."""
    learner, source, _, found = started()
    seen, own = by_expert(found.embeddings), by_expert(found.prototypes)
    present = found.labels.unique().tolist()
    assert 1 < len(present) < EXPERTS
    said = F.normalize(shares_of_the_gate(learner, source) ** 10, p=1, dim=1)  # as it answers
    for k in range(EXPERTS):
        weights = (found.labels == k).float() if k in present else said[:, k]
        torch.testing.assert_close(own[k, k], F.normalize((weights[:, None] * seen[:, k]).sum(dim=0), dim=0))


def test_how_sure_the_gate_is_is_said_as_k_means_says_it():
    """Softmax of the cosines over 0.1: its own shares, softmax of the cosines, to the power of ten."""
    learner, source, _, found = started()
    shares = shares_of_the_gate(learner, source)
    assert shares.max() < 0.25
    sure = F.normalize(shares**10, p=1, dim=1).max(dim=1).values
    torch.testing.assert_close(found.confidence, sure, rtol=1e-4, atol=1e-5)
    assert found.confidence.max() > 0.5


def test_prototypes_are_found_before_the_first_epoch_where_a_number_was_once_suggested():
    source = digits()
    config = quick_config(source, method="mice", clusters=10, suggest__range=(2, 20), train__epochs=2)
    assert config.clusters == EXPERTS
    fitted = train(config, source, CPU, Silent())
    assert len(fitted.history) == 3


def test_the_queue_keeps_what_every_expert_of_the_target_made_of_both_views():
    learner, source, state, _ = started(queue__size=200)
    before = state.queue.embeddings.clone()
    m_step(learner, source, BATCH, state)
    assert state.queue.embeddings.shape == (200, EXPERTS * WIDTH)
    assert (state.queue.images[:128] == BATCH.repeat(2)).all()
    assert not torch.equal(state.queue.embeddings[:128], before[:128])
    assert torch.equal(state.queue.embeddings[128:], before[128:])


def test_the_gate_reads_a_view_of_its_own():
    learner, source, state, _ = started()
    seen = []
    learner.network.online.backbone.register_forward_pre_hook(lambda _, given: seen.append(given[0].clone()))
    m_step(learner, source, BATCH, state)
    first, second, third = seen
    assert first.shape == second.shape == third.shape
    assert not torch.equal(third, first)
    assert not torch.equal(third, second)
