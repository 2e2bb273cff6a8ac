"""What a stage computes anew before every epoch, and one more view of each image."""

import pytest
import torch
import torch.nn.functional as F

from helpers.small import CPU, digits, quick_config, same_weights
from propos.methods import NearestAnswers, Seen
from propos.training.expectation import unassigned
from propos.training.learner import at_stage, build_learner
from propos.training.maximization import maximization_step
from propos.training.opening import open_stage, refresh
from propos.training.pairs import further_view, paired_views
from propos.training.state import first_state


def opened(**settings):
    """Return a learner in NNM's own stage, a state in its second epoch and the images."""
    source = digits()
    config = quick_config(source, method="nnm", train__epochs=6, **settings)
    learner = at_stage(build_learner(config, source, CPU), 1)
    state = first_state(learner)
    state.epoch = learner.epochs.start
    open_stage(learner, source, state)
    state.epoch += 1
    state.partition = unassigned(learner.schedule.images, CPU)
    return learner, state, source


def test_the_answers_of_the_nearest_by_hand():
    features = torch.tensor([[1.0, 0.0], [9.0, 1.0], [0.0, 1.0], [1.0, 9.0]])
    answers = torch.arange(16.0).view(4, 2, 2)
    seen = Seen(features, features, answers, 0, slice(1, 4))
    assert torch.equal(NearestAnswers()(seen), answers[[0, 3, 2]])


def test_they_are_those_of_the_network_as_it_is_before_each_epoch():
    learner, state, source = opened()
    name = NearestAnswers().name
    before = {key: table.clone() for key, table in state.prepared.items()}
    assert before[name].shape == (200, 3, 10)
    refresh(learner, source, state)
    assert torch.equal(state.prepared[name], before[name])  # nothing has learnt yet
    for _ in range(3):
        maximization_step(learner, source, torch.arange(64), state)
    assert torch.equal(state.prepared[name], before[name])  # within an epoch they stay
    refresh(learner, source, state)
    assert not torch.equal(state.prepared[name], before[name])
    assert torch.equal(state.prepared["neighbours"], before["neighbours"])  # these are the stage's
    again = state.prepared[name].clone()
    state.epoch = learner.epochs.start
    refresh(learner, source, state)  # the first epoch has what the stage opened with
    assert torch.equal(state.prepared[name], again)


def test_one_more_view_is_of_the_image_and_drawn_by_itself():
    learner, state, source = opened(strong__operations=1, strong__cutout=0.0)
    batch = torch.arange(64)
    first, _ = paired_views(learner, source, batch, state, (0, 0))
    more = further_view(learner, source, batch, (0, 0))
    assert torch.equal(more, further_view(learner, source, batch, (0, 0)))
    assert not torch.equal(more, further_view(learner, source, batch, (1, 0)))
    alike = (more == first).flatten(1).all(dim=1).float().mean()
    assert 0 < float(alike) < 0.9  # one operation that may leave an image as it is
    apart = (first[:, None] - more).flatten(2).norm(dim=2)
    assert (apart.argmin(dim=0) == batch).float().mean() > 0.4  # of 64 the image's own, unless it was solarised


@pytest.mark.parametrize("settings", [{}, {"network__joint_views": True, "network__bn_groups": 2}])
def test_it_passes_by_itself_and_again_to_the_same_bits(settings):
    plain, recomputed = (opened(train__recompute=recompute, **settings) for recompute in (False, True))
    losses = [
        maximization_step(learner, source, torch.arange(64), state) for learner, state, source in (plain, recomputed)
    ]
    assert torch.equal(*losses)
    assert same_weights(plain[0].network, recomputed[0].network)


def test_its_batch_norm_is_its_own():
    learner, state, source = opened()
    views = paired_views(learner, source, torch.arange(64), state, (0, 0))
    more = further_view(learner, source, torch.arange(64), (0, 0))
    learner.network.begin_step()
    passed = learner.network(views, None, again=more)
    expected = F.softmax(learner.network.cluster_head(learner.network.online.backbone(more)), dim=-1)
    torch.testing.assert_close(passed.again, expected)
