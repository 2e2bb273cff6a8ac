"""What keeps float32 when the backbone computes in half precision, and what a deterministic run asks of torch."""

import os

import pytest
import torch
from torch import nn
from torch.backends import cudnn

from helpers.small import CPU, digits, quick_config, quick_train, same_weights
from propos.methods.seeds import generator
from propos.networks import Mlp, autocast
from propos.training import Silent
from propos.training.context import BatchContext
from propos.training.e_step import current_embeddings
from propos.training.estimate import late_state
from propos.training.learner import build_learner
from propos.training.m_step import m_step
from propos.training.numerics import CUBLAS, numerics


def kinds_in(run, network):
    """Return the kinds of numbers that fully connected layers and convolutions give while something runs."""
    found = {nn.Linear: set(), nn.Conv2d: set()}
    for module in network.modules():
        if type(module) in found:
            module.register_forward_hook(lambda module, _, made: found[type(module)].add(made.dtype))
    run()
    return found[nn.Linear], found[nn.Conv2d]


@pytest.mark.parametrize(("method", "precision"), [("propos", "bfloat16"), ("propos", "float16"), ("cc", "bfloat16")])
def test_heads_compute_in_float32_and_the_backbone_does_not(method, precision):
    learner = build_learner(quick_config(method=method, train__precision=precision), digits(), CPU)

    def step():
        m_step(learner, digits(), torch.arange(16), late_state(learner))

    assert kinds_in(step, learner.method) == ({torch.float32}, {getattr(torch, precision)})


def test_noise_of_the_papers_size_survives_half_precision():
    """The predictor sees z + σε: in bfloat16 numbers near 1 lie 0.0078 apart, and most of σ = 0.001 would be lost."""
    head = Mlp(16, 16)
    nn.init.eye_(head[0].weight)
    nn.init.zeros_(head[0].bias)
    projections = torch.full((4, 16), 1.0)
    noise = 0.001 * torch.randn(4, 16, generator=torch.Generator().manual_seed(0))
    with autocast(CPU, "bfloat16"):
        seen = head(projections + noise)
    torch.testing.assert_close(seen, projections + noise, rtol=0, atol=1e-7)


def test_gradients_of_heads_are_those_of_float32():
    """What half precision does to the backbone reaches the heads only through the features they are given."""
    encoder = build_learner(quick_config(), digits(), CPU).method.online
    features = torch.randn(8, 128, generator=torch.Generator().manual_seed(0)).bfloat16()
    gradients = []
    for precision in ("float32", "bfloat16"):
        encoder.zero_grad()
        with autocast(CPU, precision):
            made = encoder.projector(features)
        made.square().sum().backward()
        gradients.append([parameter.grad.clone() for parameter in encoder.projector.parameters()])
    assert all(torch.equal(first, second) for first, second in zip(*gradients, strict=True))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_images_are_shuffled_in_the_precision_of_the_backbone_and_give_the_same_bits(precision):
    settings = {"train__precision": precision, "network__bn_groups": 2, "network__shuffle_bn": True}
    learner = build_learner(quick_config(**settings), digits(), CPU)
    view = torch.randn(16, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    order = torch.randperm(16, generator=generator(learner.seed, "shuffle", 0, 0))
    ctx = BatchContext.of(learner, late_state(learner), 16)
    given = []
    learner.method.target.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    made = ctx.encode(learner.method.target, view, shuffled=True)[0]
    assert given[0].dtype == getattr(torch, precision)
    assert torch.equal(made[order], ctx.encode(learner.method.target, view[order])[0])


def test_an_e_step_computes_in_the_precision_of_the_run():
    learner = build_learner(quick_config(train__precision="bfloat16"), digits(), CPU)
    embeddings = []
    kinds = kinds_in(lambda: embeddings.append(current_embeddings(learner, digits(), 0)), learner.method)
    assert kinds == ({torch.float32}, {torch.bfloat16})
    assert embeddings[0].dtype == torch.float32
    exact = build_learner(quick_config(), digits(), CPU)
    torch.testing.assert_close(embeddings[0], current_embeddings(exact, digits(), 0), rtol=0, atol=0.05)
    torch.testing.assert_close(embeddings[0].norm(dim=1), torch.ones(200))


def allowed():
    return torch.are_deterministic_algorithms_enabled(), cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32


class Watching(Silent):
    """Sees what torch is allowed to do while a run trains."""

    def step(self, epoch, step):
        self.seen = allowed()


@pytest.mark.full
def test_a_deterministic_run_takes_only_what_repeats_and_ends_with_the_same_bits_on_a_cpu(monkeypatch):
    monkeypatch.delenv(CUBLAS, raising=False)
    before, reporter = allowed(), Watching()
    run = quick_train(train__deterministic=True, progress=reporter)
    assert reporter.seen == (True, False, True, False)
    assert os.environ[CUBLAS] == ":4096:8"
    assert allowed() == before
    assert same_weights(run.model.method, quick_train().model.method)


def test_other_runs_take_what_is_fastest():
    before, reporter = allowed(), Watching()
    quick_train(progress=reporter, train__epochs=1)
    assert reporter.seen == (False, True, False, True)
    assert allowed() == before


def test_torchs_settings_are_restored_after_a_failure():
    before = allowed()
    with pytest.raises(ZeroDivisionError), numerics(quick_config(train__deterministic=True).train):
        raise ZeroDivisionError
    assert allowed() == before
