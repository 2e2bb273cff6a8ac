"""An expert for each cluster, in a run: their prototypes, their queue, and the view that the gate reads."""

import torch
import torch.nn.functional as F

from helpers.small import CPU, digits, quick_config
from propos.training.expectation import expectation
from propos.training.learner import build_learner
from propos.training.maximization import maximization_step
from propos.training.state import first_state

BATCH, EXPERTS, WIDTH = torch.arange(64), 10, 16


def started(**settings):
    source = digits()
    learner = build_learner(quick_config(source, method="mice", **settings), source, CPU)
    state = first_state(learner)
    found = expectation(learner, source, 0, None)
    state.partition = found.partition()
    return learner, source, state, found


def by_expert(rows):
    return F.normalize(rows.view(len(rows), EXPERTS, WIDTH), dim=2)


def test_every_expert_has_an_equal_part_in_an_embedding():
    *_, found = started()
    assert found.embeddings.shape == (200, EXPERTS * WIDTH)
    lengths = found.embeddings.view(200, EXPERTS, WIDTH).norm(dim=2)
    torch.testing.assert_close(lengths, torch.full_like(lengths, EXPERTS**-0.5))


def test_a_prototype_is_the_direction_of_what_its_expert_makes_of_its_clusters_images():
    """And of a cluster that has none, of all images, weighed by the gate."""
    *_, found = started()
    seen, own = by_expert(found.embeddings), by_expert(found.prototypes)
    present = found.labels.unique().tolist()
    assert 1 < len(present) < EXPERTS
    for k in present:
        torch.testing.assert_close(own[k, k], F.normalize(seen[found.labels == k, k].sum(dim=0), dim=0))
    torch.testing.assert_close(own.norm(dim=2), torch.ones(EXPERTS, EXPERTS))


def test_the_queue_keeps_what_every_expert_of_the_target_made_of_both_views():
    learner, source, state, _ = started(queue__size=200)
    before = state.queue.embeddings.clone()
    maximization_step(learner, source, BATCH, state)
    assert state.queue.embeddings.shape == (200, EXPERTS * WIDTH)
    assert (state.queue.images[:128] == BATCH.repeat(2)).all()
    assert not torch.equal(state.queue.embeddings[:128], before[:128])
    assert torch.equal(state.queue.embeddings[128:], before[128:])


def test_the_gate_reads_a_view_of_its_own():
    learner, source, state, _ = started()
    seen = []
    learner.network.online.backbone.register_forward_pre_hook(lambda _, given: seen.append(given[0].clone()))
    maximization_step(learner, source, BATCH, state)
    first, second, third = seen
    assert first.shape == second.shape == third.shape
    assert not torch.equal(third, first)
    assert not torch.equal(third, second)
