"""Cluster heads and prototype layers, and passes in eval mode within a step."""

import torch
import torch.nn.functional as F

from helpers.small import CPU, digits, quick_config, two_views
from propos.networks import ClusterHeads, Mlp, PrototypeLayer
from propos.training.context import BatchContext
from propos.training.learner import build_learner
from propos.training.state import first_state

FEATURES = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))


def test_several_heads_differ_and_the_chosen_one_decides():
    heads = ClusterHeads(lambda: Mlp(5, 3), 4)
    logits = heads(FEATURES)
    assert logits.shape == (6, 4, 3)
    assert len({tuple(each.flatten().tolist()) for each in logits.unbind(dim=1)}) == 4
    heads.chosen.fill_(2)
    assert torch.equal(heads.pick(logits), logits[:, 2])
    assert "chosen" in heads.state_dict()


def test_the_lowest_loss_since_the_last_choice_chooses():
    heads = ClusterHeads(lambda: Mlp(5, 3), 3)
    for losses in ([0.3, 0.1, 0.2], [0.1, 0.2, 0.05]):
        heads.record(torch.tensor(losses))
    heads.choose()
    assert int(heads.chosen) == 2  # 0.4, 0.3, 0.25
    heads.record(torch.tensor([0.1, 0.2, 0.3]))
    heads.choose()
    assert int(heads.chosen) == 0


def test_a_prototype_layer_is_a_cosine_whatever_the_lengths():
    layer = PrototypeLayer(5, 3)
    torch.testing.assert_close(layer.weight.norm(dim=1), torch.ones(3))
    before, cosines = layer.weight.detach().clone(), layer(FEATURES)
    with torch.no_grad():
        layer.weight.mul_(torch.tensor([[2.0], [3.0], [0.5]]))
    expected = torch.stack([F.cosine_similarity(FEATURES, row[None]) for row in before], dim=1)
    torch.testing.assert_close(cosines, expected)
    torch.testing.assert_close(layer(FEATURES), cosines)
    layer.normalise()
    torch.testing.assert_close(layer.weight.detach(), before)


def test_a_prediction_within_a_step_uses_running_statistics_and_moves_none():
    learner = build_learner(quick_config(), digits(), CPU)
    method, ctx = learner.method.train(), BatchContext.of(learner, first_state(learner), 20)
    view = two_views(learner, range(20), (0, 0))[0]
    ctx.encode(method.online, view)  # so that the running statistics are not their first
    before = {name: buffer.clone() for name, buffer in method.named_buffers()}
    found = ctx.predict(method.online, view)
    assert not found.requires_grad
    assert all(module.training for module in method.online.modules())
    assert all(torch.equal(buffer, before[name]) for name, buffer in method.named_buffers())
    with torch.no_grad():
        torch.testing.assert_close(found, method.online.eval()(view))
