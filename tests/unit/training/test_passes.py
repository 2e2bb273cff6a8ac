"""The same passes in other ways: compiled, or with blocks that are passed again instead of remembered."""

import pytest
import torch

from helpers.small import CPU, digits, quick_config, same_weights
from propos.common.errors import InputError
from propos.training.estimate import late_state
from propos.training.learner import build_learner
from propos.training.m_step import m_step


def two_steps(learner):
    """Return the losses of two steps, each with every term."""
    state = late_state(learner)
    losses = [m_step(learner, digits(), torch.arange(64), state) for _ in range(2)]
    return torch.stack([each[name] for each in losses for name in ("psa", "psl")])


@pytest.mark.parametrize(
    "settings", [{}, {"network__bn_groups": 2, "network__shuffle_bn": True}, {"train__precision": "bfloat16"}]
)
def test_recomputed_blocks_give_the_same_gradients_and_buffers_to_the_bit(settings):
    plain = build_learner(quick_config(**settings), digits(), CPU)
    again = build_learner(quick_config(train__recompute=True, **settings), digits(), CPU)
    assert torch.equal(two_steps(plain), two_steps(again))
    assert same_weights(plain.method, again.method)


def remembered(learner, images):
    """Return the bytes that a pass through the backbone keeps for the backward pass, weights aside."""
    kept = {}
    weights = {parameter.data_ptr() for parameter in learner.method.parameters()}

    def keep(tensor):
        if tensor.data_ptr() not in weights:
            kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        learner.method.train()
        passed = learner.method.online.backbone(images)
    assert passed.requires_grad
    return sum(kept.values())


def test_recomputed_blocks_remember_less():
    images = torch.randn(16, 1, 32, 32)
    plain, again = (
        remembered(build_learner(quick_config(train__recompute=recompute), digits(), CPU), images)
        for recompute in (False, True)
    )
    assert again < plain / 2


@pytest.mark.full
def test_a_compiled_backbone_gives_the_same_losses_and_weights():
    """Torch's own code for the compiled graph, not made for this machine: making that takes a minute."""
    plain, compiled = (build_learner(quick_config(), digits(), CPU) for _ in range(2))
    compiled.method.compile_networks(backend="aot_eager")
    torch.testing.assert_close(two_steps(compiled), two_steps(plain))
    assert compiled.method.state_dict().keys() == plain.method.state_dict().keys()
    for name, weight in plain.method.state_dict().items():
        torch.testing.assert_close(compiled.method.state_dict()[name], weight, rtol=1e-4, atol=1e-5)
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore:`torch.jit")  # torch's own
def test_the_setting_has_both_backbones_compiled():
    learner = build_learner(quick_config(train__compile=True), digits(), CPU)
    assert learner.method.online.backbone._compiled_call_impl is not None
    assert learner.method.target.module.backbone._compiled_call_impl is not None


def test_compiled_blocks_that_are_to_pass_again_are_refused():
    with pytest.raises(InputError, match=r"train\.compile and train\.recompute"):
        quick_config(train__compile=True, train__recompute=True)
