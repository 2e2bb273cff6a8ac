"""The same passes in other ways: compiled, or with blocks that are passed again instead of remembered."""

import numpy as np
import pytest
import torch
from torch._dynamo.utils import counters

from helpers.operations import META, processes
from helpers.small import CPU, digits, quick_config, same_weights
from propos.common.errors import InputError
from propos.data import from_array
from propos.methods import complete_sections
from propos.runner.recipes import build_recipe
from propos.training import prepare
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
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch's own, which it hides itself
@pytest.mark.parametrize("settings", [{}, {"network__bn_groups": 2, "network__shuffle_bn": True}])
def test_compiled_networks_give_the_same_losses_and_weights(settings):
    """Torch's own code for the compiled graph, not made for this machine: making that takes a minute."""
    plain, compiled = (build_learner(quick_config(**settings), digits(), CPU) for _ in range(2))
    compiled.method.compile_networks(backend="aot_eager")
    torch.testing.assert_close(two_steps(compiled), two_steps(plain))
    assert compiled.method.state_dict().keys() == plain.method.state_dict().keys()
    for name, weight in plain.method.state_dict().items():
        torch.testing.assert_close(compiled.method.state_dict()[name], weight, rtol=1e-4, atol=1e-5)
    torch._dynamo.reset()


# Online and target backbone, their projectors, and the predictor; on eight processes groups lie on two of them each.
GRAPHS = 5


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch's own, which it hides itself
@pytest.mark.parametrize(("recipe", "count"), [("cifar-10-r18", 1), ("imagenet-1k", 8)])
def test_compiled_networks_are_one_graph_each(recipe, count):
    """A step as a GPU takes it, with both views in one pass and statistics of their own, on the meta device."""
    pixels = np.random.default_rng(0).integers(256, size=(32, 32, 32, 3), dtype=np.uint8)
    source = from_array(pixels, list(range(4)) * 8)
    small = {"train.batch_size": 32, "network.width": 1 / 16, "network.hidden": 8, "network.dimension": 4}
    squares = {"views.size": 32, "views.keep": "squares", "train.accumulate": 1, "clusters": 4}
    torch._dynamo.reset()
    counters.clear()
    with processes(count):
        config = complete_sections(build_recipe(recipe).with_settings({**small, **squares}))
        learner = build_learner(prepare(config, source), source, META)
        learner.method.compile_networks(backend="eager")
        for _ in range(2):
            m_step(learner, source, torch.arange(32), late_state(learner))
    assert dict(counters["graph_break"]) == {}
    assert counters["stats"]["unique_graphs"] == GRAPHS
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore:`torch.jit")  # torch's own
def test_the_setting_has_backbones_and_heads_compiled():
    learner = build_learner(quick_config(train__compile=True), digits(), CPU)
    assert learner.method.online.backbone._compiled_call_impl is not None
    assert learner.method.target.module.backbone._compiled_call_impl is not None
    assert learner.method.predictor._compiled_call_impl is not None


def test_compiled_blocks_that_are_to_pass_again_are_refused():
    with pytest.raises(InputError, match=r"train\.compile and train\.recompute"):
        quick_config(train__compile=True, train__recompute=True)
